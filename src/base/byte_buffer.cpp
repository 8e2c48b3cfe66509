#include "base/byte_buffer.h"

#include <cstdint>
#include <new>  // tidy: allow ownership: for std::bad_alloc

#include <sys/mman.h>

namespace fermata {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

void* allocate_pages(std::size_t bytes) {
  if (bytes < huge_page) return std::allocator<std::byte>().allocate(bytes);
  // Room to begin at a multiple of a huge page; what is left over is given back.
  const std::size_t kept = (bytes + page - 1) / page * page;
  const std::size_t mapped = kept + huge_page;
  void* at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(at);
  const std::size_t over = reinterpret_cast<std::uintptr_t>(first) % huge_page;
  const std::size_t before = over == 0 ? 0 : huge_page - over;
  if (before > 0) (void)munmap(first, before);
  if (mapped > before + kept) (void)munmap(first + before + kept, mapped - before - kept);
  // An advice only: without it the bytes lie on small pages.
  (void)madvise(first + before, kept, MADV_HUGEPAGE);
  return first + before;
}

void free_pages(void* at, std::size_t bytes) {
  if (bytes < huge_page) {
    std::allocator<std::byte>().deallocate(static_cast<std::byte*>(at), bytes);
  } else {
    (void)munmap(at, bytes);
  }
}

}  // namespace fermata
