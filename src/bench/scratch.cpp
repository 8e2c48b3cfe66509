#include "bench/scratch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fermata::bench {
namespace {

namespace fs = std::filesystem;

// Pages of the file that lie in memory; -1: unknown.
std::int64_t pages_in_memory(int fd, std::size_t size, std::size_t pages) {
  void* at = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return -1;
  std::vector<unsigned char> there(pages);
  const bool known = mincore(at, size, there.data()) == 0;
  munmap(at, size);
  if (!known) return -1;
  return std::count_if(there.begin(), there.end(), [](unsigned char p) { return (p & 1) != 0; });
}

}  // namespace

Result<std::unique_ptr<ScratchFolder>, std::string> ScratchFolder::make() {
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "fermata-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    return Err("no folder at " + pattern + ": " + strerror(errno));
  }
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(pattern));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Result<double, std::string> ScratchFolder::push_out() const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::int64_t all = 0, left = 0;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(path_, error)) {
    if (!entry.is_regular_file(error)) continue;
    const std::size_t size = entry.file_size(error);
    if (error || size == 0) continue;
    const int fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    const std::size_t pages = (size + page - 1) / page;
    const bool out = fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
    const std::int64_t there = out ? pages_in_memory(fd, size, pages) : -1;
    close(fd);
    if (there < 0) return Err("cannot push " + entry.path().string() + " out of memory");
    all += static_cast<std::int64_t>(pages);
    left += there;
  }
  if (error) return Err("cannot look through " + path_.string() + ": " + error.message());
  return all == 0 ? 0.0 : static_cast<double>(left) / static_cast<double>(all);
}

}  // namespace fermata::bench
