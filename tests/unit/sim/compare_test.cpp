// The comparison of policies: a machine on which everything fits one by one, and one row for each.
#include "sim/compare.h"

#include "sim/workload.h"

#include <gtest/gtest.h>

namespace fermata::sim {
namespace {

const Workload& named(std::string_view name) {
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return workload;
  }
  ADD_FAILURE() << name;
  return workloads().front();
}

TEST(Compare, AnOvercommittedPoolParksAndAnAmpleOneDoesNot) {
  const auto arrivals = named("stories").arrivals(1);
  RigSpec spec = machine_for(named("stories"), arrivals, {.over = 4});
  const RunFigures tight = run(spec, arrivals);
  EXPECT_GT(tight.parks, 0);
  spec.geometry.n_ctx = spec.geometry.n_ctx * 16;
  const RunFigures ample = run(spec, arrivals);
  EXPECT_EQ(ample.parks, 0);
  EXPECT_LT(ample.makespan, tight.makespan);
}

TEST(Compare, ParkingBeatsWaitingForTheWorstCase) {
  const auto arrivals = named("chat").arrivals(1);
  RigSpec spec = machine_for(named("chat"), arrivals, {.over = 2});
  const RunFigures parking = run(spec, arrivals);
  spec.scheduler.overcommit = false;
  EXPECT_LT(parking.makespan, run(spec, arrivals).makespan);
}

TEST(Compare, TheSameRunsGiveTheSameFigures) {
  const auto arrivals = named("tail").arrivals(1);
  const RigSpec spec = machine_for(named("tail"), arrivals, {.over = 2});
  EXPECT_EQ(run(spec, arrivals).makespan, run(spec, arrivals).makespan);
}

}  // namespace
}  // namespace fermata::sim
