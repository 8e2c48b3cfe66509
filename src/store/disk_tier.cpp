#include "store/disk_tier.h"

#include "base/log.h"
#include "store/format.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>

namespace fermata::store {
namespace {

// Read and hashed in turns: what fits a core's own cache. And the kernel reads ahead from where a
// short read ended while this one is hashed; for a long one it waits (1 MiB: 40 ms for 98 MB in
// eight files, 32 KiB: 28 ms; asking with POSIX_FADV_WILLNEED: 65 ms).
constexpr std::size_t piece_bytes = std::size_t{32} << 10;

// `got` is less than all at the file's end.
int read_pieces(const Fd& file, Intake& into, std::size_t& got) {
  const std::span<std::byte> bytes = into.bytes();
  for (got = 0; got < bytes.size();) {
    const auto piece = bytes.subspan(got, std::min(piece_bytes, bytes.size() - got));
    std::size_t came = 0;
    const int error = read_at(file, piece, block_header_bytes + got, came);
    if (error != 0) return error;
    got += came;
    into.came(got);
    if (came < piece.size()) break;
  }
  return 0;
}

}  // namespace

Outcome outcome_of(int error) {
  switch (error) {
    case 0:
      return Outcome::done;
    case ENOENT:
      return Outcome::missing;
    case ENOSPC:
    case EDQUOT:
      return Outcome::full;
    // A symlink, or no regular file: somebody else's.
    case ELOOP:
    case EINVAL:
      return Outcome::foreign;
    default:
      return Outcome::failed;
  }
}

Outcome DiskTier::do_put(const BlockRef& block, const Fingerprint& fingerprint,
                         std::span<const std::byte> bytes) {
  const BlockHeader header = encode_block_header(block, fingerprint);
  const std::array<std::span<const std::byte>, 2> pieces = {header, bytes};
  const std::string name = to_hex(block.id);
  const int error = folder_.write_file(name, pieces);
  const int before = last_error_.exchange(error);
  if (error != 0 && before != error) {
    log_warn("pages: block {} was not written: {}; others alike are not told", name,
             std::strerror(error));
  }
  if (error == 0 && before != 0) log_info("pages: blocks are written again");
  if (error == 0) return Outcome::done;
  return outcome_of(error) == Outcome::full ? Outcome::full : Outcome::failed;
}

Outcome DiskTier::do_get(const BlockRef& block, const Fingerprint& fingerprint, Intake& into) {
  const std::string name = to_hex(block.id);
  Fd file;
  std::uint64_t size = 0;
  int error = folder_.open_file(name, O_RDONLY, file, size);
  if (error != 0) {
    const Outcome outcome = outcome_of(error);
    if (outcome == Outcome::failed) {
      log_warn("pages: block {} cannot be read: {}", name, std::strerror(error));
    }
    return outcome;
  }
  if (size != block_header_bytes + into.bytes().size()) return Outcome::damaged;
  BlockHeader header;
  std::size_t got = 0;
  error = read_at(file, header, 0, got);
  if (error == 0 && got == header.size()) {
    switch (check_block_header(header, block, fingerprint)) {
      case HeaderCheck::good:
        break;
      case HeaderCheck::foreign_format:
      case HeaderCheck::foreign_fingerprint:
        return Outcome::foreign;
      case HeaderCheck::damaged:
        return Outcome::damaged;
    }
    error = read_pieces(file, into, got);
  }
  if (error != 0) {
    log_warn("pages: block {} cannot be read: {}", name, std::strerror(error));
    return Outcome::failed;
  }
  return got == into.bytes().size() ? Outcome::done : Outcome::damaged;
}

Outcome DiskTier::do_erase(const BlockRef& block) {
  const int error = folder_.remove(to_hex(block.id));
  if (error == 0 || error == ENOENT) return outcome_of(error);
  log_warn("pages: block {} cannot be removed: {}", to_hex(block.id), std::strerror(error));
  return Outcome::failed;
}

void DiskTier::do_condemn(const BlockRef& block, Outcome why) { aside_(to_hex(block.id), why); }

Outcome DiskTier::do_settle() {
  const int error = folder_.sync();
  if (error == 0) return Outcome::done;
  log_warn("pages: the folder of blocks was not synced: {}", std::strerror(error));
  return outcome_of(error) == Outcome::full ? Outcome::full : Outcome::failed;
}

}  // namespace fermata::store
