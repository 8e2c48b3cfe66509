// Choices of one request: they leave the pool together and come back together.
#include "unit/policy/scene.h"

namespace fermata::policy {
namespace {

constexpr GroupId group{7};

// Seats 0 and 1 hold a group: 40 cells each, the first 30 of them the same.
void seat_group(Scene& scene) {
  RunningView& first = scene.decoding(0, 40);
  first.group = group;
  first.together = Tokens(50);
  RunningView& second = scene.share(scene.decoding(1, 40), 30);
  second.group = group;
  second.shared = Tokens(30);
  second.together = Tokens(50);
}

void park_group(Scene& scene, std::int64_t shared = 30) {
  for (const std::int64_t with_first : {std::int64_t{0}, shared}) {
    ParkedView& parked = scene.parked(40);
    parked.group = group;
    parked.shared = Tokens(with_first);
  }
}

using Seats = std::vector<int>;
using Indices = std::vector<std::size_t>;

TEST(Groups, LeaveTogetherAndTheirSharedCellsCountOnce) {
  Scene scene(110);
  seat_group(scene);
  scene.decoding(2, 60);  // All 110 cells are taken, and three want one more.
  scene.view().ram_left = Bytes(500);
  EXPECT_EQ(scene.parks(), (Seats{0, 1}));
  // 50 cells of 10 bytes each: the budget is enough, counted once.
  for (const Park& park : scene.plan().park) EXPECT_EQ(park.mode, ParkMode::swap);
  EXPECT_EQ(scene.plan().run.size(), 1U);
  scene.view().ram_left = Bytes(499);
  for (const Park& park : scene.plan().park) EXPECT_EQ(park.mode, ParkMode::recompute);
}

TEST(Groups, OfTheLeaderStayWhileAnybodyElseCanGo) {
  Scene scene(105);
  seat_group(scene);
  scene.view().preempt.victim = Victim::largest;
  scene.decoding(2, 30);
  scene.decoding(3, 25);
  EXPECT_EQ(scene.parks(), (Seats{2}));
}

TEST(Groups, AloneInThePoolLeaveOneByOneSoThatSomebodyAdvances) {
  Scene scene(50);
  seat_group(scene);
  EXPECT_EQ(scene.parks(), (Seats{1}));
}

TEST(Groups, AForcedParkOfOneTakesAll) {
  Scene scene(500);
  seat_group(scene);
  scene.decoding(2, 60);
  scene.view().preempt.every = Tokens(5);
  scene.running(1).since_start = Tokens(5);
  EXPECT_EQ(scene.parks(), (Seats{0, 1}));
}

TEST(Groups, ComeBackTogetherOrNotAtAll) {
  // 50 cells, a quantum of 8 for each of three: 74 beside the 60 of the other.
  for (const auto& [cells, resumed] :
       {std::pair{std::int64_t{134}, Indices{0, 1}}, {std::int64_t{133}, Indices{}}}) {
    Scene scene(cells);
    scene.decoding(2, 60);
    park_group(scene);
    EXPECT_EQ(scene.resumes(), resumed) << cells << " cells";
  }
}

TEST(Groups, ComeBackOneByOneWhenTogetherTheyNeverFit) {
  Scene scene(60);
  park_group(scene, 0);
  EXPECT_EQ(scene.resumes(), (Indices{0}));
}

TEST(Groups, WaitForEachOtherAndForNobodyElse) {
  Scene scene(500);
  park_group(scene);
  scene.parked(20);
  scene.hold_parked(1);
  EXPECT_EQ(scene.resumes(), (Indices{2}));
}

TEST(Groups, StandInLineWhereTheirFirstDoes) {
  Scene scene(500);
  scene.parked(20).group = group;
  scene.parked(20);
  scene.parked(20).group = group;
  EXPECT_EQ(scene.resumes(), (Indices{0, 2, 1}));
}

TEST(Groups, WhoAwaitsThePromptOfAnotherIsPassed) {
  Scene scene(500);
  scene.reading(0, 10, 30).group = group;
  scene.waiting(20, 40).awaits_prompt = true;
  scene.waiting(21, 40);
  ASSERT_EQ(scene.plan().admit.size(), 1U);
  EXPECT_EQ(scene.plan().admit[0].id, RequestId(21));
}

class BrokenGroups : public ::testing::Test {
 protected:
  BrokenGroups() {
    seat_group(scene_);
    scene_.decoding(2, 60);
    scene_.parked(20).group = GroupId(8);
    scene_.parked(20).group = GroupId(8);
    scene_.waiting(20, 40).awaits_prompt = true;
    scene_.plan();
  }
  std::string fault() { return find_fault(scene_.view(), plan_).value_or("nothing"); }

  Scene scene_{500};
  Plan plan_;
};

TEST_F(BrokenGroups, APartThatIsParked) {
  plan_.park = {{1, ParkMode::swap}};
  EXPECT_EQ(fault(), "parks a part of a group");
  plan_.park = {{0, ParkMode::swap}, {1, ParkMode::swap}};
  EXPECT_EQ(fault(), "nothing");
  plan_.park = {{1, ParkMode::swap}, {2, ParkMode::swap}};
  EXPECT_EQ(fault(), "nothing") << "nobody else is left";
}

TEST_F(BrokenGroups, APartThatIsResumed) {
  plan_.resume = {{1, Seat(3)}};
  EXPECT_EQ(fault(), "resumes a part of a group");
  plan_.park = {{0, ParkMode::swap}, {1, ParkMode::swap}};
  plan_.resume = {{0, Seat(3)}, {1, Seat(0)}};
  EXPECT_EQ(fault(), "nothing");
}

TEST_F(BrokenGroups, AChoiceThatIsTooEarly) {
  plan_.admit = {{RequestId(20), Seat(3), std::nullopt, Tokens(0)}};
  EXPECT_EQ(fault(), "admits a choice whose prompt is not there yet");
}

}  // namespace
}  // namespace fermata::policy
