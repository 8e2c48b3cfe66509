// The words of parking, as plans, counters and receipts use them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata::policy {

// How a sequence is taken out of the pool.
enum class ParkMode : std::uint8_t {
  swap,       // Its exact bytes wait in RAM.
  recompute,  // Its tokens wait; its cells are computed again.
};

enum class ParkReason : std::uint8_t {
  pressure,     // The next step's rows did not fit.
  forced,       // PreemptOptions::every.
  rotation,     // It had its turn, and somebody has waited long.
  priority,     // Somebody of higher priority needs its place.
  unread,       // Its client does not read, and somebody waits.
  manual,       // An operator holds it.
  last_resort,  // A step found no cells, whatever the plan had counted.
  reconfigure,  // The new geometry has no seat or no cells for it.
};
inline constexpr std::size_t park_reasons = 8;

}  // namespace fermata::policy
