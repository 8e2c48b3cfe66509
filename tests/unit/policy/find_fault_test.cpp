// Each kind of broken plan is named. The plan they are made from is a good one.
#include "unit/policy/world.h"

#include <functional>

#include <gtest/gtest.h>

namespace fermata::policy {
namespace {

// Seats: 0 busy, 1 and 2 idle, 3 empty. Request 10 goes on from seat 1, 11 shares from seat 0 into
// seat 3; 12 insists on seat 2. Two run: one decodes, one has 5 rows of prompt left.
struct Scene {
  World world{4, 100};
  View view;
  Plan plan;

  Scene() {
    world.busy(0, std::string(20, 's') + "zero", 40);
    world.idle(1, std::string(10, 'c'), 1);
    world.idle(2, std::string(10, 'd'), 2);
    world.wait(10, std::string(10, 'c') + "more", 3);
    world.wait(11, std::string(20, 's') + "more", 3);
    world.wait(12, "dd", 1, Seat(2));
    world.run({RequestId(1), Seat(0), Phase::decode, Tokens(0)});
    world.run({RequestId(2), Seat(0), Phase::prefill, Tokens(5)});
    world.run({RequestId(3), Seat(0), Phase::decode, Tokens(0), true});
    world.batch_max = Tokens(6);
    view = world.view();
    plan.evict = {Seat(2)};
    plan.admit = {{RequestId(10), Seat(1), std::nullopt, Tokens(10)},
                  {RequestId(11), Seat(3), Seat(0), Tokens(20)}};
    plan.run = {{0, Tokens(1)}, {1, Tokens(5)}};
  }
};

TEST(FindFault, GoodPlanHasNone) {
  const Scene scene;
  EXPECT_EQ(find_fault(scene.view, scene.plan), std::nullopt);
  EXPECT_EQ(find_fault(scene.view, {}), std::nullopt);
}

struct Planted {
  const char* name;
  std::function<void(Plan&)> plant;
  std::string fault;
};

class FindFault : public ::testing::TestWithParam<Planted> {};

TEST_P(FindFault, NamesWhatIsBroken) {
  Scene scene;
  GetParam().plant(scene.plan);
  EXPECT_EQ(find_fault(scene.view, scene.plan).value_or("nothing"), GetParam().fault);
}

INSTANTIATE_TEST_SUITE_P(Evictions, FindFault,
                         ::testing::Values(Planted{"no_seat", [](Plan& p) { p.evict = {Seat(4)}; },
                                                   "evicts seat 4, which does not exist"},
                                           Planted{"negative_seat",
                                                   [](Plan& p) { p.evict = {Seat(-1)}; },
                                                   "evicts seat -1, which does not exist"},
                                           Planted{"busy", [](Plan& p) { p.evict = {Seat(0)}; },
                                                   "evicts seat 0, not idle"},
                                           Planted{"empty", [](Plan& p) { p.evict = {Seat(3)}; },
                                                   "evicts seat 3, not idle"},
                                           Planted{"twice",
                                                   [](Plan& p) {
                                                     p.evict = {Seat(2), Seat(2)};
                                                   },
                                                   "evicts seat 2 twice"}),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Admissions, FindFault,
    ::testing::Values(Planted{"twice", [](Plan& p) { p.admit[1].id = RequestId(10); },
                              "admits one request twice"},
                      Planted{"unknown", [](Plan& p) { p.admit[1].id = RequestId(99); },
                              "admits a request that does not wait"},
                      Planted{"no_seat", [](Plan& p) { p.admit[1].seat = Seat(4); },
                              "admits to seat 4, which is none"},
                      Planted{"busy_seat", [](Plan& p) { p.admit[0].seat = Seat(0); },
                              "admits to seat 0, which is taken"},
                      Planted{"seat_of_this_plan", [](Plan& p) { p.admit[1].seat = Seat(1); },
                              "admits to seat 1, which is taken"},
                      Planted{"not_the_pinned_seat",
                              [](Plan& p) {
                                p.admit[1] = {RequestId(12), Seat(3), std::nullopt, Tokens(0)};
                              },
                              "admits to another seat than asked"},
                      Planted{"no_source", [](Plan& p) { p.admit[1].source = Seat(9); },
                              "shares from a seat that does not exist"},
                      Planted{"itself", [](Plan& p) { p.admit[0].source = Seat(1); },
                              "shares a seat with itself"},
                      Planted{"more_than_its_own", [](Plan& p) { p.admit[0].reuse = Tokens(11); },
                              "reuses more than the seats have in common"},
                      Planted{"more_than_shareable", [](Plan& p) { p.admit[1].reuse = Tokens(21); },
                              "reuses more than the seats have in common"},
                      Planted{"evicted_own", [](Plan& p) { p.evict = {Seat(1)}; },
                              "reuses cells that the plan drops"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Rows, FindFault,
    ::testing::Values(
        Planted{"unknown", [](Plan& p) { p.run[0].running = 3; }, "runs what is not running"},
        Planted{"twice", [](Plan& p) { p.run[0].running = 1; }, "runs one sequence twice"},
        Planted{"blocked", [](Plan& p) { p.run[0].running = 2; },
                "runs a sequence whose client does not read"},
        Planted{"none", [](Plan& p) { p.run[1].rows = Tokens(0); },
                "runs rows that a sequence does not have"},
        Planted{"two_decode_rows", [](Plan& p) { p.run[0].rows = Tokens(2); },
                "runs rows that a sequence does not have"},
        Planted{"beyond_the_prompt", [](Plan& p) { p.run[1].rows = Tokens(6); },
                "runs rows that a sequence does not have"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(FindFault, ReuseOfASeatThatThePlanTookBefore) {
  World world(3, 100);
  world.idle(0, "abcdef", 1);
  world.wait(1, "x", 1);
  world.wait(2, "abcxyz", 1);
  Plan plan;
  plan.admit = {{RequestId(1), Seat(0), std::nullopt, Tokens(0)},
                {RequestId(2), Seat(1), Seat(0), Tokens(3)}};
  EXPECT_EQ(find_fault(world.view(), plan), "reuses cells that the plan drops");
  // The other way round it works: the cells are shared before their seat is taken.
  std::swap(plan.admit[0], plan.admit[1]);
  EXPECT_EQ(find_fault(world.view(), plan), std::nullopt);
  EXPECT_EQ(world.apply(plan), "");
}

TEST(FindFault, MoreRowsThanAStepMayHave) {
  Scene scene;
  scene.view.batch_max = Tokens(5);
  EXPECT_EQ(find_fault(scene.view, scene.plan), "runs more rows than a step may have");
}

TEST(FindFault, RequestThatWasNotLookedAtReusesNothing) {
  Scene scene;
  std::vector<WaitingView> waiting(scene.view.waiting.begin(), scene.view.waiting.end());
  waiting[0].prefixes = {};
  scene.view.waiting = waiting;
  EXPECT_EQ(find_fault(scene.view, scene.plan), "reuses more than the seats have in common");
  scene.plan.admit[0].reuse = Tokens(0);
  EXPECT_EQ(find_fault(scene.view, scene.plan), std::nullopt);
}

TEST(FindFault, PromiseOfMoreCellsThanThePoolCanFree) {
  World world(3, 100);
  world.busy(0, "busy", 41);
  world.wait(1, std::string(60, 'x'), 1);
  Plan plan;
  plan.admit = {{RequestId(1), Seat(1), std::nullopt, Tokens(0)}};
  EXPECT_EQ(find_fault(world.view(), plan), "promises more cells than the pool can free");
}

TEST(FindFault, PromiseOfCellsThatIdleSeatsStillHold) {
  World world(3, 100);
  world.idle(0, std::string(50, 'i'), 1);
  world.wait(1, std::string(60, 'x'), 1);
  Plan plan;
  plan.admit = {{RequestId(1), Seat(1), std::nullopt, Tokens(0)}};
  EXPECT_EQ(find_fault(world.view(), plan), "promises more cells than the pool can free");
  plan.evict = {Seat(0)};
  EXPECT_EQ(find_fault(world.view(), plan), std::nullopt);
  // Taking the seat frees its cells as well.
  plan.evict = {};
  plan.admit[0].seat = Seat(0);
  EXPECT_EQ(find_fault(world.view(), plan), std::nullopt);
}

TEST(FindFault, PromiseOfCellsThatARequestGoesOnFrom) {
  World world(3, 100);
  world.idle(0, std::string(50, 'c'), 1);
  world.wait(1, std::string(50, 'c') + "x", 51);  // 101 cells in all, 51 of them new
  world.wait(2, std::string(10, 'y'), 1);
  Plan plan;
  plan.admit = {{RequestId(1), Seat(0), std::nullopt, Tokens(50)},
                {RequestId(2), Seat(1), std::nullopt, Tokens(0)}};
  EXPECT_EQ(find_fault(world.view(), plan), "promises more cells than the pool can free");
}

TEST(FindFault, SplitLayoutPromisesNothingAcrossSeats) {
  World world(2, 100, {.layout = Layout::split});
  world.busy(0, std::string(40, 'b'), 49);
  world.wait(1, std::string(40, 'x'), -1);
  Plan plan;
  plan.admit = {{RequestId(1), Seat(1), std::nullopt, Tokens(0)}};
  EXPECT_EQ(find_fault(world.view(), plan), std::nullopt);
}

}  // namespace
}  // namespace fermata::policy
