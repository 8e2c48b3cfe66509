// Who is parked at the least cost, and who gives way without having had its turn.
#include "unit/policy/scene.h"

namespace fermata::policy {
namespace {

using Seats = std::vector<int>;

TEST(Victims, TheCheapestToBringBackGoesFirst) {
  Scene scene(100);
  View& view = scene.view();
  view.preempt.victim = Victim::cost;
  view.ram_left = Bytes(150);  // Only the one of 10 would be swapped, at 20 us a cell.
  view.rates.move_per_mib = Micros(1 << 20);
  scene.decoding(0, 20);
  scene.decoding(1, 45);  // The leader.
  scene.decoding(2, 10);
  scene.decoding(3, 25);
  view.rates.prefill_per_1k = Micros(500'000);
  EXPECT_EQ(scene.parks(), Seats{2});
  view.rates.prefill_per_1k = Micros(5'000);
  EXPECT_EQ(scene.parks(), Seats{0}) << "computing again is cheaper; of two that cost the same "
                                        "the smaller";
}

TEST(Victims, VictimsHaveNames) {
  for (const Victim victim :
       {Victim::smallest, Victim::youngest, Victim::oldest, Victim::largest, Victim::cost}) {
    EXPECT_EQ(victim_from(name(victim)), victim);
  }
  EXPECT_EQ(victim_from("admission-only"), std::nullopt);
}

TEST(Victims, AfterALongWaitWhoDoesNotReadGivesWayAtOnce) {
  // A slow reader held its place for a quantum of tokens, each as late as its client pleased.
  Scene scene(100);
  RunningView& slow = scene.decoding(0, 50);
  scene.decoding(1, 40);
  ParkedView& head = scene.parked(35);
  head.parked_at = Micros(10'000'000 - 2'000'000);
  EXPECT_EQ(scene.parks(), Seats{}) << "nobody had its turn";
  slow.blocked = true;
  EXPECT_EQ(scene.parks(), Seats{0});
  head.parked_at = Micros(10'000'000);
  EXPECT_EQ(scene.parks(), Seats{}) << "nobody has waited long";
}

}  // namespace
}  // namespace fermata::policy
