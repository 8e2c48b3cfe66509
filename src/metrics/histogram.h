// Durations by size, for Prometheus. Thread-safe like a Counter: one relaxed add per observation.
#pragma once

#include "base/types.h"
#include "metrics/counters.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace fermata {

// The last bucket has no upper bound.
class TimeHistogram {
 public:
  // Upper bounds, inclusive: from a metadata edit to a conversation that waits for minutes.
  static constexpr std::array<Micros, 16> bounds = {
      Micros(100),        Micros(300),         Micros(1'000),       Micros(3'000),
      Micros(10'000),     Micros(30'000),      Micros(100'000),     Micros(300'000),
      Micros(1'000'000),  Micros(3'000'000),   Micros(10'000'000),  Micros(30'000'000),
      Micros(60'000'000), Micros(120'000'000), Micros(300'000'000), Micros(600'000'000)};
  static constexpr std::size_t buckets = bounds.size() + 1;

  void observe(Micros time) {
    std::size_t i = 0;
    while (i < bounds.size() && time > bounds[i]) ++i;
    counts_[i].add();
    if (time > Micros(0)) sum_us_.add(static_cast<std::uint64_t>(time.value));
  }

  // Observations in bucket i alone.
  std::uint64_t count(std::size_t i) const { return counts_[i].value(); }
  std::uint64_t sum_us() const { return sum_us_.value(); }

 private:
  std::array<Counter, buckets> counts_;
  Counter sum_us_;
};

}  // namespace fermata
