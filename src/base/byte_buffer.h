// Room for large runs of bytes that are written before they are read: growing one does not clear
// it, and a large one lies on huge pages where the system has them.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace fermata {

// Throws std::bad_alloc. `bytes` > 0.
void* allocate_pages(std::size_t bytes);
// REQUIRES: allocate_pages(bytes) gave it.
void free_pages(void* at, std::size_t bytes);

template <class T>
struct PageAllocator {
  using value_type = T;

  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(allocate_pages(n * sizeof(T))); }
  void deallocate(T* at, std::size_t n) { free_pages(at, n * sizeof(T)); }

  // A value that nobody gave stays what the memory holds.
  template <class U>
  void construct(U* at) {
    std::uninitialized_default_construct_n(at, 1);
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    std::construct_at(at, std::forward<Args>(args)...);
  }

  template <class U>
  friend bool operator==(const PageAllocator&, const PageAllocator<U>&) {
    return true;
  }
};

using ByteBuffer = std::vector<std::byte, PageAllocator<std::byte>>;

// What it held is lost. False: there is no memory for so much; it may be empty then.
[[nodiscard]] inline bool resize(ByteBuffer& buffer, std::size_t size) {
  try {
    if (size > buffer.capacity()) buffer = ByteBuffer();
    buffer.resize(size);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace fermata
