// Who was parked must come back in order and in time; what is told when that is not so.
#include "sim/wait_watch.h"

#include <gtest/gtest.h>

namespace fermata::sim {
namespace {

using Line = std::vector<WaitWatch::Parked>;
using Ids = std::vector<RequestId>;

constexpr Micros step{10};

WaitWatch::Parked parked(std::uint64_t id, std::int32_t priority = 0) {
  return {RequestId(id), priority};
}

class Watching : public ::testing::Test {
 protected:
  WaitWatch watch_{{.rotate_after = Micros(100), .place = Micros(50)}};
};

TEST_F(Watching, TheHeadOfTheLineComesBackFirst) {
  watch_.tick({parked(1), parked(2)}, 0, {RequestId(2)}, step);
  EXPECT_TRUE(watch_.faults().empty());
}

TEST_F(Watching, WhoPassesTheHeadIsNamed) {
  watch_.tick({parked(1), parked(2)}, 0, {RequestId(1)}, step);
  ASSERT_EQ(watch_.faults().size(), 1U);
  EXPECT_EQ(watch_.faults()[0], "request 2 passed request 1, parked before it");
}

TEST_F(Watching, AHigherPriorityPasses) {
  watch_.tick({parked(1), parked(2, 1)}, 0, {RequestId(1)}, step);
  EXPECT_TRUE(watch_.faults().empty());
}

TEST_F(Watching, WhoDoesNotReadOrWantsOneSeatIsPassed) {
  WaitWatch::Parked deaf = parked(1), choosy = parked(2);
  deaf.reads = false;
  choosy.bound = true;
  watch_.tick({deaf, choosy, parked(3)}, 0, {RequestId(1), RequestId(2)}, step);
  EXPECT_TRUE(watch_.faults().empty());
}

TEST_F(Watching, AWaitAboveTheBoundIsToldOnce) {
  for (int i = 0; i < 15; ++i) watch_.tick({parked(1)}, 0, {RequestId(1)}, step);
  EXPECT_TRUE(watch_.faults().empty());
  EXPECT_EQ(watch_.wait_of_bound(), 1.0);
  for (int i = 0; i < 5; ++i) watch_.tick({parked(1)}, 0, {RequestId(1)}, step);
  ASSERT_EQ(watch_.faults().size(), 1U);
  EXPECT_EQ(watch_.faults()[0],
            "request 1 has waited 160 us with 0 resumed before it; at most 150");
}

TEST_F(Watching, EachResumeBeforeItAllowsForOneMorePlace) {
  watch_.tick({parked(1), parked(2)}, 0, {RequestId(2)}, step);
  for (int i = 0; i < 19; ++i) watch_.tick({parked(2)}, 0, {RequestId(2)}, step);
  EXPECT_TRUE(watch_.faults().empty());
  watch_.tick({parked(2)}, 0, {RequestId(2)}, step);
  EXPECT_EQ(watch_.faults().size(), 1U);
}

TEST_F(Watching, TimeInWhichAHigherPriorityRunsDoesNotCount) {
  for (int i = 0; i < 100; ++i) watch_.tick({parked(1)}, 1, {RequestId(1)}, step);
  EXPECT_TRUE(watch_.faults().empty());
  EXPECT_EQ(watch_.wait_of_bound(), 0.0);
}

}  // namespace
}  // namespace fermata::sim
