// What is copied ahead of a park, and what happens when a step finds no cells after all.
#include "unit/policy/scene.h"

namespace fermata::policy {
namespace {

TEST(LastResort, AStepThatFoundNoCellsCostsIdleSeatsAndASequence) {
  Scene scene(1000);
  scene.decoding(0, 300);
  scene.decoding(1, 100);
  scene.reading(2, 50, 200);
  scene.idle(3, 100, 5);
  EXPECT_TRUE(scene.plan().park.empty());
  scene.view().no_room = 1;
  const Plan& plan = scene.plan();
  EXPECT_EQ(plan.evict, (std::vector<Seat>{Seat(3)}));
  ASSERT_EQ(plan.park.size(), 1U);
  EXPECT_EQ(plan.park[0].running, 2U);
  EXPECT_EQ(plan.park[0].reason, ParkReason::last_resort);
}

TEST(LastResort, StepsGetShorterWhenNobodyElseIsLeft) {
  Scene scene(1000);
  scene.reading(0, 50, 400);
  EXPECT_EQ(scene.plan().run[0].rows, Tokens(400));
  scene.view().no_room = 2;
  EXPECT_EQ(scene.plan().run[0].rows, Tokens(128));
  scene.view().no_room = 30;
  EXPECT_EQ(scene.plan().run[0].rows, Tokens(1));
}

TEST(LastResort, WithoutThePlannerNobodyIsParkedBeforeAStepHasFailed) {
  Scene scene(1000);
  scene.view().preempt.planner = false;
  scene.decoding(0, 600);
  scene.decoding(1, 400);
  EXPECT_TRUE(scene.plan().park.empty());
  EXPECT_EQ(scene.plan().run.size(), 2U);
  scene.view().no_room = 1;
  EXPECT_EQ(scene.parks(), (std::vector<int>{1}));
}

std::vector<std::size_t> mirrors(Scene& scene) {
  std::vector<std::size_t> out;
  for (const Mirror& mirror : scene.plan().mirror) out.push_back(mirror.running);
  return out;
}

TEST(Mirroring, WhoIsHeldIsNoSignOfPressure) {
  Scene scene(2000);
  scene.view().blocks_max = 3;
  scene.decoding(0, 800);
  scene.decoding(1, 300);
  scene.parked(900).held = true;
  EXPECT_TRUE(mirrors(scene).empty());
  scene.parked(900);
  EXPECT_TRUE(scene.resumes().empty()) << "it does not fit";
  EXPECT_FALSE(mirrors(scene).empty());
}

TEST(Mirroring, BeginsWhenCellsGetShortWithWhoWouldBeParkedFirst) {
  Scene scene(2000);
  scene.view().blocks_max = 3;
  scene.decoding(0, 800);
  scene.decoding(1, 300);
  EXPECT_TRUE(mirrors(scene).empty()) << "45 percent are no reason";
  scene.decoding(2, 530);
  EXPECT_EQ(mirrors(scene), (std::vector<std::size_t>{1, 2, 2})) << "the leader comes last";
  scene.view().blocks_max = 8;
  EXPECT_EQ(mirrors(scene), (std::vector<std::size_t>{1, 2, 2, 0, 0, 0}));
}

TEST(Mirroring, GoesOnFromWhatIsMirroredAndKeepsTheBudget) {
  Scene scene(1000);
  scene.view().blocks_max = 8;
  scene.decoding(0, 500).mirrored = Tokens(256);
  scene.decoding(1, 300).mirrored = Tokens(200);
  EXPECT_EQ(mirrors(scene), (std::vector<std::size_t>{1}));
  scene.view().mirror_ram_left = Bytes(10 * 56 - 1);
  EXPECT_TRUE(mirrors(scene).empty());
}

TEST(Mirroring, WaitsWhileSequencesAreMoved) {
  Scene scene(1000);
  scene.view().blocks_max = 8;
  scene.decoding(0, 500);
  scene.decoding(1, 499);
  EXPECT_TRUE(mirrors(scene).empty()) << "one of them is parked";
  EXPECT_EQ(scene.plan().park.size(), 1U);
}

TEST(Mirroring, APlanThatCopiesTooMuchIsRefused) {
  Scene scene(1000);
  scene.view().blocks_max = 1;
  scene.decoding(0, 500);
  scene.decoding(1, 300);
  Plan plan = scene.plan();
  plan.mirror = {{0}, {1}};
  EXPECT_EQ(find_fault(scene.view(), plan), "mirrors more blocks than a tick may");
  scene.view().blocks_max = 8;
  plan.mirror = {{1}, {1}};
  EXPECT_EQ(find_fault(scene.view(), plan), "mirrors cells that are not there");
  plan.mirror = {{2}};
  EXPECT_EQ(find_fault(scene.view(), plan), "mirrors what is not running");
  plan.mirror = {{0}};
  scene.view().mirror_ram_left = Bytes(10);
  EXPECT_EQ(find_fault(scene.view(), plan), "mirrors more bytes than the budget has left");
}

}  // namespace
}  // namespace fermata::policy
