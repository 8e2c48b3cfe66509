// The simulator finds what is wrong, says the same again for the same seed, and counts.
#include "base/log.h"
#include "sim/seeds.h"

#include <gtest/gtest.h>

namespace fermata::sim {
namespace {

class Schedules : public ::testing::Test {
 protected:
  void SetUp() override {
    LogOptions quiet;
    quiet.disabled = true;  // Broken steps are wanted here.
    ASSERT_TRUE(start_logging(quiet));
  }
};

ScheduleOptions planted(Plant plant) {
  return {.memory = memory_from("attention_pooled"), .plant = plant};
}

// Every schedule has a first request; each of these faults concerns it, or all cells.
void expect_found_in_every_seed(Plant plant, const std::string& words) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome outcome = play(seed, planted(plant));
    ASSERT_FALSE(outcome.faults.empty()) << "seed " << seed;
    EXPECT_NE(outcome.faults.front().find(words), std::string::npos) << outcome.faults.front();
  }
}

TEST_F(Schedules, ALostFinalEventIsFound) {
  expect_found_in_every_seed(Plant::lost_final, "request 1: 0 final events");
}

TEST_F(Schedules, AWrongTextIsFound) {
  expect_found_in_every_seed(Plant::wrong_text, "request 1: ");
}

TEST_F(Schedules, ALeakedCellIsFound) {
  expect_found_in_every_seed(Plant::leaked_cell, "the scheduler counts");
}

TEST_F(Schedules, ASeedIsTheSameEveryTime) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Figures one = play(seed, {}).figures, other = play(seed, {}).figures;
    EXPECT_EQ(one.ticks, other.ticks);
    EXPECT_EQ(one.recomputed, other.recomputed);
    EXPECT_EQ(one.wait_of_bound, other.wait_of_bound);
    EXPECT_EQ(describe_seed(seed, {}), describe_seed(seed, {}));
  }
}

TEST_F(Schedules, DrawWhatTheyAreMeantToMeet) {
  std::int64_t told = 0;
  const SeedsOutcome outcome = play_seeds({.first = 1, .count = 600, .threads = 2}, {},
                                          [&](std::int64_t done, const auto&) { told = done; });
  EXPECT_TRUE(outcome.failed.empty());
  EXPECT_EQ(told, 600);
  EXPECT_GT(outcome.figures.parks, 1000);
  EXPECT_GT(outcome.figures.recomputed, 1000);
  EXPECT_GT(outcome.figures.cancelled, 100);
  EXPECT_GT(outcome.figures.no_room, 100);
  EXPECT_GT(outcome.figures.broken, 10);
  EXPECT_GT(outcome.figures.spilled, 50);
  EXPECT_GT(outcome.figures.unspilled, 50);
  EXPECT_GT(outcome.figures.spills_lost, 10);
  EXPECT_GT(outcome.figures.wait_of_bound, 0.1) << "the bound says next to nothing";
}

TEST_F(Schedules, FailedSeedsComeInOrder) {
  const SeedsOutcome outcome =
      play_seeds({.first = 5, .count = 10, .threads = 3}, planted(Plant::lost_final),
                 [](std::int64_t, const auto&) {});
  ASSERT_EQ(outcome.failed.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(outcome.failed[i].first, 5 + i);
}

TEST_F(Schedules, EveryMemoryHasItsName) {
  EXPECT_EQ(memories().size(), 10U);
  for (const Memory& memory : memories()) {
    ASSERT_TRUE(memory_from(memory.name).has_value());
    EXPECT_NE(describe_seed(1, {.memory = memory}).find(memory.name), std::string::npos);
  }
  EXPECT_FALSE(memory_from("paper").has_value());
}

}  // namespace
}  // namespace fermata::sim
