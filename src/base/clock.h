// Time is passed in, so that the simulator and the tests own it.
#pragma once

#include "base/types.h"

#include <atomic>

namespace fermata {

// Monotonic time since an arbitrary start. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Micros now() const = 0;
};

// The machine's steady clock.
class SteadyClock final : public Clock {
 public:
  Micros now() const override;
};

// Stands still until advanced. Thread-safe, so that a server under test may read it.
class FakeClock final : public Clock {
 public:
  Micros now() const override { return Micros(now_us_.load(std::memory_order_relaxed)); }
  // REQUIRES: by >= 0.
  void advance(Micros by);

 private:
  std::atomic<std::int64_t> now_us_{0};
};

// Seconds since 1970, for `created` fields and log lines only; never for durations.
std::int64_t wall_clock_seconds();

}  // namespace fermata
