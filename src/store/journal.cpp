#include "store/journal.h"

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>

namespace fermata::store {
namespace {

const std::string file_name = "journal";
constexpr std::size_t bytes_max = std::size_t{4} << 30;

}  // namespace

JournalRead Journal::read(const std::function<void(Record&&)>& with) const {
  using State = JournalRead::State;
  JournalRead out;
  std::vector<std::byte> bytes;
  out.error = folder_.read_file(file_name, bytes_max, bytes);
  if (out.error == ENOENT || (out.error == 0 && bytes.size() < journal_header_bytes)) return out;
  if (out.error == ELOOP || out.error == EINVAL || out.error == EFBIG) {
    out.state = State::damaged;
    return out;
  }
  out.state = State::failed;
  if (out.error != 0) return out;
  JournalReader reader(bytes);
  for (;;) {
    Record record;
    const JournalReader::Next next = reader.next(record);
    out.size = reader.position();
    out.torn = bytes.size() - out.size;
    switch (next) {
      case JournalReader::Next::record:
        ++out.records;
        out.clean = record.type == RecordType::closed;
        with(std::move(record));
        continue;
      case JournalReader::Next::torn:
        out.clean = false;
        [[fallthrough]];
      case JournalReader::Next::end:
        out.state = State::good;
        return out;
      case JournalReader::Next::damaged:
        out.state = State::damaged;
        return out;
      case JournalReader::Next::foreign:
        out.state = State::foreign;
        return out;
    }
  }
}

int Journal::open_for_appending() {
  return folder_.open_file(file_name, O_WRONLY | O_APPEND, file_, size_);
}

int Journal::resume(const JournalRead& from) {
  const int error = open_for_appending();
  if (error != 0) return error;
  records_ = from.records;
  if (size_ == from.size) return 0;
  size_ = from.size;
  return folder_.truncate(file_, size_);
}

int Journal::rewrite(std::span<const std::byte> records, std::size_t count) {
  const auto header = encode_journal_header();
  const std::array<std::span<const std::byte>, 2> pieces = {header, records};
  int error = folder_.write_file(file_name, pieces);
  if (error != 0) return error;
  // The old file is no longer the journal: nothing more may go to it.
  broken_ = true;
  error = folder_.sync();
  if (error == 0) error = open_for_appending();
  if (error != 0) return error;
  broken_ = false;
  records_ = count;
  return 0;
}

int Journal::append(std::span<const std::byte> records, std::size_t count) {
  if (broken_) return EIO;
  int error = folder_.append(file_, records);
  if (error == 0) error = folder_.sync_file(file_);
  if (error == 0) {
    size_ += records.size();
    records_ += count;
    return 0;
  }
  broken_ = folder_.truncate(file_, size_) != 0;
  return error;
}

}  // namespace fermata::store
