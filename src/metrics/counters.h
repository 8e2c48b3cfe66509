// Counting is one relaxed add beside the code that counts. Names, units and formats exist only
// where the numbers are written out. Everything here is thread-safe; readers see each number
// whole, but not several numbers of one instant.
#pragma once

#include <atomic>
#include <cstdint>

namespace fermata {

// Only grows.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Goes up and down.
class Gauge {
 public:
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  // Returns the new value.
  std::int64_t add(std::int64_t by) { return value_.fetch_add(by, std::memory_order_relaxed) + by; }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

}  // namespace fermata
