// Many schedules, each from its own seed, on several threads. A simulation is single-threaded, and
// seeds know nothing of each other.
#pragma once

#include "sim/schedule.h"

#include <functional>
#include <utility>

namespace fermata::sim {

struct SeedRange {
  std::uint64_t first = 1;
  std::int64_t count = 1;
  int threads = 1;
};

using FailedSeeds = std::vector<std::pair<std::uint64_t, std::vector<std::string>>>;

struct SeedsOutcome {
  FailedSeeds failed;  // By seed, ascending.
  Figures figures;     // Of all together.
};

// `tell` is called after every seed, on any of the threads but never on two at once, with how many
// are done and which of them failed, in the order of their ends.
SeedsOutcome play_seeds(const SeedRange& range, const ScheduleOptions& options,
                        const std::function<void(std::int64_t done, const FailedSeeds&)>& tell);

// The seed that the calling thread plays now; 0: none. Safe in a signal handler, for the last words
// of a process that a failed check ends.
std::uint64_t seed_of_this_thread();

}  // namespace fermata::sim
