#include "base/clock.h"

#include "base/check.h"

#include <chrono>

namespace fermata {

Micros SteadyClock::now() const {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  return Micros(
      duration_cast<microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

void FakeClock::advance(Micros by) {
  FERMATA_CHECK(by >= Micros(0), "a clock never runs backwards");
  now_us_.fetch_add(by.value, std::memory_order_relaxed);
}

std::int64_t wall_clock_seconds() {
  using std::chrono::duration_cast;
  using std::chrono::seconds;
  return duration_cast<seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace fermata
