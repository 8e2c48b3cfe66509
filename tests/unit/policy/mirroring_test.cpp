// Which blocks of running sequences are copied ahead of a park.
#include "unit/policy/scene.h"

namespace fermata::policy {
namespace {

using Indices = std::vector<std::size_t>;

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
  EXPECT_EQ(scene.resumes(), Indices{}) << "it does not fit";
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
