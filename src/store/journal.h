// The file that tells what is stored: records in the order they happened, each with a checksum.
// Not thread-safe: the keeper's, under the lock of its changes.
#pragma once

#include "store/files.h"
#include "store/format.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace fermata::store {

struct JournalRead {
  enum class State : std::uint8_t {
    good,
    none,     // There is no journal, or not even the whole header of one.
    damaged,  // It cannot be trusted: rebuild.
    foreign,  // Of another version.
    failed,   // The system refused; `error`.
  };
  State state = State::none;
  int error = 0;
  std::size_t records = 0;
  std::uint64_t size = 0;  // Of what is good.
  std::uint64_t torn = 0;  // Bytes behind that.
  bool clean = true;       // The last record says that the folder was closed, or there is none.
};

class Journal {
 public:
  explicit Journal(const Folder& folder) : folder_(folder) {}

  JournalRead read(const std::function<void(Record&&)>& with) const;

  // Ready to append, behind what read() found good; the rest is cut. 0 or an errno.
  int resume(const JournalRead& from);
  // A new journal of these records takes the place of the old one at once.
  int rewrite(std::span<const std::byte> records, std::size_t count);
  // Durable when 0. After a failure none of it is there; where that could not be had either, this
  // and every later call fails.
  int append(std::span<const std::byte> records, std::size_t count);

  std::size_t records() const { return records_; }

 private:
  int open_for_appending();

  const Folder& folder_;
  Fd file_;
  std::uint64_t size_ = 0;
  std::size_t records_ = 0;
  bool broken_ = false;
};

}  // namespace fermata::store
