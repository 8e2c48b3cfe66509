#include "sim/seeds.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace fermata::sim {
namespace {

thread_local std::uint64_t current_seed = 0;

}  // namespace

std::uint64_t seed_of_this_thread() { return current_seed; }

SeedsOutcome play_seeds(const SeedRange& range, const ScheduleOptions& options,
                        const std::function<void(std::int64_t done, const FailedSeeds&)>& tell) {
  SeedsOutcome out;
  std::mutex mutex;  // Of `out` and `done`.
  std::int64_t done = 0;
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t i = next++; i < range.count; i = next++) {
      const std::uint64_t seed = range.first + static_cast<std::uint64_t>(i);
      current_seed = seed;
      Outcome outcome = play(seed, options);
      current_seed = 0;
      const std::lock_guard lock(mutex);
      out.figures.add(outcome.figures);
      if (!outcome.faults.empty()) out.failed.emplace_back(seed, std::move(outcome.faults));
      tell(++done, out.failed);
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < range.threads; ++t) helpers.emplace_back(work);
    work();
  }
  std::sort(out.failed.begin(), out.failed.end());
  return out;
}

}  // namespace fermata::sim
