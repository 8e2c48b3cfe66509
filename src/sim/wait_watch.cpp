#include "sim/wait_watch.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

namespace fermata::sim {

void WaitWatch::tick(const std::vector<Parked>& before, std::int32_t others_priority,
                     const std::vector<RequestId>& after, Micros took) {
  const auto stayed = [&](const Parked& parked) {
    return std::find(after.begin(), after.end(), parked.id) != after.end();
  };
  // Who left but can not read has been cancelled.
  std::int64_t resumed = 0;
  for (const Parked& parked : before) resumed += parked.reads && !stayed(parked);
  const Parked* head = nullptr;  // Of those who stayed: nobody behind it may have left.
  std::int32_t highest = others_priority;
  for (const Parked& parked : before) {
    if (!parked.reads) continue;
    highest = std::max(highest, parked.priority);
    if (parked.bound || !stayed(parked)) continue;
    if (head == nullptr || parked.priority > head->priority) head = &parked;
  }
  for (const Parked& parked : before) {
    const bool eligible = parked.reads && !parked.bound;
    const bool passes =
        head != nullptr && parked.reads && !stayed(parked) &&
        (parked.priority < head->priority || (parked.priority == head->priority && &parked > head));
    if (passes) {
      faults_.push_back(fmt::format("request {} passed request {}, parked before it",
                                    parked.id.value, head->id.value));
    }
    if (!eligible || !stayed(parked)) {
      waits_.erase(parked.id.value);
      continue;
    }
    Wait& wait = waits_[parked.id.value];
    wait.resumed_before += resumed;
    // While somebody of higher priority runs or waits, it is not its turn.
    if (parked.priority >= highest) wait.time += took;
    check(parked.id, wait);
  }
}

void WaitWatch::check(RequestId id, Wait& wait) {
  const Micros most = bound_.of(wait.resumed_before);
  wait_of_bound_ = std::max(wait_of_bound_,
                            static_cast<double>(wait.time.value) / static_cast<double>(most.value));
  if (wait.time <= most || wait.told) return;
  wait.told = true;
  faults_.push_back(fmt::format("request {} has waited {} us with {} resumed before it; at most {}",
                                id.value, wait.time.value, wait.resumed_before, most.value));
}

}  // namespace fermata::sim
