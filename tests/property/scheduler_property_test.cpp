// Thousands of random schedules on the strict fake engine, each from one seed. What must hold,
// whatever arrives, leaves, dawdles or fails: every request gets exactly one final event and the
// text of its solo run; cells are conserved; nothing waits for ever.
#include "base/log.h"
#include "sim/schedule.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

class RandomSchedules : public ::testing::TestWithParam<sim::Memory> {};

TEST_P(RandomSchedules, EveryRequestGetsItsSoloTextOnce) {
  constexpr std::uint64_t seeds = 400;
  LogOptions quiet;
  quiet.disabled = true;  // Broken steps are wanted here.
  ASSERT_TRUE(start_logging(quiet));
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const sim::Outcome outcome = sim::play(seed, {.memory = GetParam()});
    for (const std::string& what : outcome.faults) ADD_FAILURE() << what;
    ASSERT_TRUE(outcome.faults.empty())
        << "again: fermata sim --seed " << seed << " --memory " << GetParam().name;
  }
}

INSTANTIATE_TEST_SUITE_P(Memories, RandomSchedules, ::testing::ValuesIn(sim::memories()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fermata
