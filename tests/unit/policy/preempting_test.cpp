// Who is parked, who comes back and who is let in. Numbers in brackets are the mistakes of others
// that a test guards against.
#include "unit/policy/scene.h"

namespace fermata::policy {
namespace {

using Seats = std::vector<int>;
using Indices = std::vector<std::size_t>;

TEST(Preempting, NobodyIsParkedWhileTheNextStepFits) {
  Scene scene(100);
  scene.decoding(0, 50);
  scene.decoding(1, 48);
  EXPECT_EQ(scene.parks(), Seats{});
  EXPECT_EQ(scene.plan().run.size(), 2U);
}

TEST(Preempting, IdleConversationsGoFirst) {  // (1) their cells were forgotten
  Scene scene(100);
  scene.idle(2, 20, 5).idle(3, 10, 9);
  scene.decoding(0, 40);
  scene.decoding(1, 30);
  EXPECT_EQ(scene.parks(), Seats{});
  EXPECT_EQ(scene.plan().evict, std::vector<Seat>{Seat(2)}) << "longest unused";
}

TEST(Preempting, TheSmallestIsParkedAndTheRestRuns) {
  Scene scene(100);
  scene.decoding(0, 50);
  scene.decoding(1, 20);
  scene.decoding(2, 30);
  EXPECT_EQ(scene.parks(), Seats{1});
  EXPECT_EQ(scene.plan().park[0].mode, ParkMode::swap);
  EXPECT_EQ(scene.plan().run.size(), 2U);
}

TEST(Preempting, OtherOrdersOfVictims) {
  for (const auto& [victim, seat] : {std::pair{Victim::smallest, 2},
                                     {Victim::youngest, 3},
                                     {Victim::oldest, 0},
                                     {Victim::largest, 3}}) {
    Scene scene(100);
    scene.view().preempt.victim = victim;
    scene.decoding(0, 20);
    scene.decoding(1, 45);  // The leader.
    scene.decoding(2, 10);
    scene.decoding(3, 25);
    EXPECT_EQ(scene.parks(), Seats{seat});
  }
}

TEST(Preempting, TheLeaderStaysWhateverTheOrder) {
  Scene scene(100);
  scene.view().preempt.victim = Victim::largest;
  scene.decoding(0, 60).priority = -5;
  scene.decoding(1, 40).priority = 5;
  EXPECT_EQ(scene.parks(), Seats{1});
}

TEST(Preempting, LowPriorityGoesFirstThenWhoWasSparedLeast) {
  Scene scene(100);
  scene.decoding(0, 40);
  scene.decoding(1, 10).parks = 3;
  scene.decoding(2, 20).replaying = true;
  scene.decoding(3, 30);
  EXPECT_EQ(scene.parks(), Seats{3}) << "parked three times or in a replay: passed over";
  Scene other(100);
  other.decoding(0, 40);
  other.decoding(1, 25).priority = 1;
  other.decoding(2, 35);
  EXPECT_EQ(other.parks(), Seats{2});
}

TEST(Preempting, WhoDoesNotReadIsParkedBeforeOthers) {
  Scene scene(100);
  scene.decoding(0, 20);
  scene.decoding(1, 50).blocked = true;
  scene.decoding(2, 30);
  EXPECT_EQ(scene.parks(), Seats{1});
}

TEST(Preempting, APromptChargesWhatItIsAboutToCompute) {  // (4) it reserved one cell
  Scene scene(100);
  scene.decoding(0, 50);
  scene.decoding(1, 20);
  scene.reading(2, 0, 40);
  EXPECT_EQ(scene.parks(), Seats{2}) << "the one without cells asks for them";
}

TEST(Preempting, OneAloneIsNeverParkedForRoom) {
  Scene scene(100);
  scene.reading(0, 90, 30);
  EXPECT_EQ(scene.parks(), Seats{});
  ASSERT_EQ(scene.plan().run.size(), 1U);
  EXPECT_EQ(scene.plan().run[0].rows, Tokens(10)) << "as far as there are cells";
}

TEST(Preempting, TheBudgetDecidesTheMode) {
  Scene scene(100);
  scene.view().ram_left = Bytes(250);
  scene.view().preempt.every = Tokens(1);
  scene.decoding(0, 20).since_start = Tokens(1);
  scene.decoding(1, 10).since_start = Tokens(1);
  scene.decoding(2, 5).since_start = Tokens(1);
  ASSERT_EQ(scene.plan().park.size(), 3U);
  EXPECT_EQ(scene.plan().park[0].mode, ParkMode::swap);       // 200 bytes.
  EXPECT_EQ(scene.plan().park[1].mode, ParkMode::recompute);  // 100 are too many.
  EXPECT_EQ(scene.plan().park[2].mode, ParkMode::swap);       // 50 are not.
  scene.view().ram_left = Bytes(0);
  for (const Park& park : scene.plan().park) EXPECT_EQ(park.mode, ParkMode::recompute);
  scene.view().ram_left.reset();
  for (const Park& park : scene.plan().park) EXPECT_EQ(park.mode, ParkMode::swap);
  scene.view().can_swap = false;
  for (const Park& park : scene.plan().park) EXPECT_EQ(park.mode, ParkMode::recompute);
}

TEST(Preempting, WhatRamHasNoRoomForGoesOnToWhatIsSlower) {
  Scene scene(100);
  scene.view().ram_left = Bytes(250);
  scene.view().slower_left = Bytes(110);
  scene.view().preempt.every = Tokens(1);
  scene.decoding(0, 20).since_start = Tokens(1);
  scene.decoding(1, 10).since_start = Tokens(1);
  scene.decoding(2, 9).since_start = Tokens(1);
  ASSERT_EQ(scene.plan().park.size(), 3U);
  EXPECT_EQ(scene.plan().park[0].mode, ParkMode::swap);       // 200 bytes.
  EXPECT_EQ(scene.plan().park[1].mode, ParkMode::swap);       // 100, where it is slower.
  EXPECT_EQ(scene.plan().park[2].mode, ParkMode::recompute);  // 90 are too many for either.
}

TEST(Preempting, WhoIsAwayIsFetchedBeforeItComesBack) {
  Scene scene(100);
  scene.parked(30).away = true;
  scene.parked(20);
  scene.waiting(7, 5);
  EXPECT_EQ(scene.plan().fetch, Indices{0});
  EXPECT_TRUE(scene.plan().resume.empty()) << "nobody passes it";
  EXPECT_TRUE(scene.plan().admit.empty());
  EXPECT_TRUE(scene.plan().park.empty()) << "there is a place for it";
}

TEST(Preempting, WhoWillSoonGetAPlaceIsFetchedAhead) {
  Scene scene(100);
  scene.decoding(0, 60).since_start = Tokens(50);
  ParkedView& parked = scene.parked(90);
  parked.away = true;
  parked.parked_at = scene.view().now - scene.view().preempt.rotate_after / 2 + Micros(1);
  EXPECT_TRUE(scene.plan().fetch.empty());
  scene.wait_longer(Micros(1));
  EXPECT_EQ(scene.plan().fetch, Indices{0});
  EXPECT_TRUE(scene.plan().park.empty());
}

TEST(Preempting, WithoutParkingTheVictimFails) {
  Scene scene(100);
  scene.view().preempt.enabled = false;
  scene.decoding(0, 60);
  scene.decoding(1, 40);
  EXPECT_TRUE(scene.plan().park.empty());
  EXPECT_EQ(scene.plan().fail, Indices{1});
}

TEST(Preempting, NobodyPassesTheHeadOfTheLine) {  // (2) small ones passed it for ever
  Scene scene(100);
  scene.decoding(0, 50);
  scene.parked(60);
  scene.parked(5);
  scene.waiting(9, 5);
  EXPECT_EQ(scene.resumes(), Indices{});
  EXPECT_TRUE(scene.plan().admit.empty()) << "nor does a new request";
}

TEST(Preempting, ResumesInOrderAsFarAsThereIsRoom) {
  Scene scene(100);
  scene.decoding(0, 20);
  scene.parked(20);
  scene.parked(10);
  scene.parked(30);
  EXPECT_EQ(scene.resumes(), (Indices{0, 1}));
}

TEST(Preempting, HigherPriorityResumesFirst) {
  Scene scene(100);
  scene.parked(60);
  scene.parked(60).priority = 1;
  EXPECT_EQ(scene.resumes(), Indices{1});
}

TEST(Preempting, WhoComesBackFindsRoomForAQuantumOfEverybody) {  // (16) parked again at once
  Scene scene(100);
  scene.decoding(0, 60);
  scene.parked(24);
  EXPECT_EQ(scene.resumes(), Indices{0}) << "60 + 8 + 24 + 8 = 100";
  Scene tight(100);
  tight.decoding(0, 60);
  tight.parked(25);
  EXPECT_EQ(tight.resumes(), Indices{});
  Scene ending(100);
  ending.decoding(0, 60, 2);
  ending.parked(30, 1);
  EXPECT_EQ(ending.resumes(), Indices{0}) << "who ends soon needs less";
}

TEST(Preempting, TwoThatComeBackTogetherLeaveRoomForEachOther) {  // (16)
  Scene scene(100);
  scene.parked(42);
  scene.parked(42);
  EXPECT_EQ(scene.resumes(), (Indices{0, 1})) << "42 + 8 + 42 + 8 = 100";
  Scene tight(100);
  tight.parked(42);
  tight.parked(43);
  EXPECT_EQ(tight.resumes(), Indices{0});
}

TEST(Preempting, RamOfWhoComesBackIsNotSpentInTheSamePlan) {  // (6) credited before it was free
  Scene scene(200);
  scene.view().ram_left = Bytes(0);
  scene.decoding(0, 60).since_start = Tokens(60);
  scene.parked(20);
  scene.parked(150).parked_at = Micros(0);
  EXPECT_EQ(scene.resumes(), Indices{0});
  ASSERT_EQ(scene.parks(), Seats{0});
  EXPECT_EQ(scene.plan().park[0].reason, ParkReason::rotation);
  EXPECT_EQ(scene.plan().park[0].mode, ParkMode::recompute);
}

TEST(Preempting, TheMarginIsWaivedInAnEmptyPool) {  // (3) it waited for ever
  Scene scene(256);
  scene.parked(250);
  EXPECT_EQ(scene.resumes(), Indices{0});
  Scene fresh(256);
  fresh.waiting(1, 250);
  EXPECT_EQ(fresh.plan().admit.size(), 1U);
}

TEST(Preempting, IdleConversationsMakeRoomForWhoComesBack) {
  Scene scene(100);
  scene.idle(0, 50, 1).idle(1, 40, 2);
  scene.parked(45);
  EXPECT_EQ(scene.resumes(), Indices{0});
  EXPECT_EQ(scene.plan().resume[0].seat, Seat(2)) << "an empty seat before an idle one";
  EXPECT_EQ(scene.plan().evict, std::vector<Seat>{Seat(0)});
}

TEST(Preempting, WhoDoesNotReadOrHasNoSeatIsPassedOver) {
  Scene scene(100);
  scene.decoding(0, 10);
  scene.parked(60).blocked = true;
  scene.parked(20).seat = Seat(0);
  scene.parked(30);
  EXPECT_EQ(scene.resumes(), Indices{2});
}

TEST(Preempting, NobodyComesInInATickThatParks) {
  Scene scene(100);
  scene.decoding(0, 60);
  scene.decoding(1, 40);
  scene.parked(3);
  EXPECT_EQ(scene.parks(), Seats{1});
  EXPECT_EQ(scene.resumes(), Indices{});
}

TEST(Preempting, WhoHasWaitedLongGetsThePlaceOfOneThatHadItsTurn) {
  Scene scene(100);
  scene.decoding(0, 30).since_start = Tokens(8);
  scene.decoding(1, 40).since_start = Tokens(8);
  scene.decoding(2, 20).since_start = Tokens(7);
  ParkedView& head = scene.parked(35);
  EXPECT_EQ(scene.parks(), Seats{}) << "it has not waited long";
  head.parked_at = Micros(10'000'000 - 2'000'000);
  EXPECT_EQ(scene.parks(), Seats{1}) << "the smallest that makes room enough (6)";
  scene.view().preempt.quantum = Tokens(9);
  EXPECT_EQ(scene.parks(), Seats{}) << "nobody had its turn";
}

TEST(Preempting, AReplayBuysALongerTurn) {
  Scene scene(100);
  scene.view().can_swap = false;
  scene.view().rates = {Micros(1000), Micros(500'000)};  // 40 rows: as long as 20 tokens.
  RunningView& running = scene.decoding(0, 40);
  running.since_start = Tokens(19);
  scene.parked(90).parked_at = Micros(0);
  EXPECT_EQ(scene.parks(), Seats{});
  running.since_start = Tokens(20);
  EXPECT_EQ(scene.parks(), Seats{0});
}

TEST(Preempting, WhoHasNotReadForLongGivesWayToOneThatWaits) {
  Scene scene(100);
  RunningView& silent = scene.decoding(0, 90);
  silent.blocked = true;
  scene.waiting(5, 50);
  EXPECT_EQ(scene.parks(), Seats{});
  silent.blocked_for = Micros(2'000'000);
  EXPECT_EQ(scene.parks(), Seats{0});
}

TEST(Preempting, HigherPriorityDisplacesLowerThatHadItsTurn) {
  Scene scene(100);
  RunningView& low = scene.decoding(0, 40);
  scene.decoding(1, 50).since_start = Tokens(8);
  scene.waiting(5, 30).priority = 1;
  low.priority = -1;
  low.since_start = Tokens(7);
  EXPECT_EQ(scene.parks(), Seats{1}) << "the lowest has not had its turn";
  EXPECT_EQ(scene.plan().park[0].reason, ParkReason::priority);
  low.since_start = Tokens(8);
  EXPECT_EQ(scene.parks(), Seats{0}) << "lowest priority first";
  EXPECT_TRUE(scene.plan().admit.empty()) << "its cells are free in the next tick";
}

TEST(Preempting, EqualPrioritiesDoNotDisplaceEachOther) {
  Scene scene(100);
  scene.decoding(0, 90).since_start = Tokens(80);
  scene.waiting(5, 30);
  EXPECT_EQ(scene.parks(), Seats{});
  scene.parked(30);
  EXPECT_EQ(scene.parks(), Seats{});
}

TEST(Preempting, HigherPriorityTakesASeatWhereOnlyThatIsMissing) {
  Scene scene(1000, 2);
  scene.decoding(0, 10).since_start = Tokens(8);
  RunningView& other = scene.decoding(1, 20);
  other.since_start = Tokens(8);
  other.priority = 3;
  scene.waiting(5, 15).priority = 2;
  scene.no_prefixes();
  EXPECT_EQ(scene.parks(), Seats{0});
  EXPECT_EQ(scene.plan().park[0].reason, ParkReason::priority);
}

TEST(Preempting, AParkedRequestOfHigherPriorityNeedNotWaitForRotation) {
  Scene scene(100);
  scene.decoding(0, 70).since_start = Tokens(8);
  ParkedView& parked = scene.parked(40);
  EXPECT_EQ(scene.parks(), Seats{});
  parked.priority = 1;
  EXPECT_EQ(scene.parks(), Seats{0});
}

TEST(Preempting, WhoWasDisplacedDoesNotKeepOutWhoDisplacedIt) {
  Scene scene(100);
  scene.parked(60);
  scene.waiting(5, 50).priority = 1;
  EXPECT_EQ(scene.resumes(), Indices{});
  ASSERT_EQ(scene.plan().admit.size(), 1U);
  Scene equal(100);
  equal.parked(60);
  equal.waiting(5, 50);
  EXPECT_EQ(equal.resumes(), Indices{0});
  EXPECT_TRUE(equal.plan().admit.empty());
}

TEST(Preempting, APromptIsNotDisplaced) {
  Scene scene(100);
  scene.reading(0, 40, 50);
  scene.waiting(5, 30).priority = 1;
  EXPECT_EQ(scene.parks(), Seats{});
}

TEST(Preempting, WhoIsHeldLeavesAndStaysOut) {
  Scene scene(100);
  scene.decoding(0, 20);
  scene.decoding(1, 30).held = true;
  EXPECT_EQ(scene.parks(), Seats{1}) << "though there is room";
  EXPECT_EQ(scene.plan().park[0].reason, ParkReason::manual);
  Scene out(100);
  out.parked(20).held = true;
  out.parked(30);
  out.waiting(7, 10);
  out.waiting(8, 10);
  out.hold_waiting(0);
  EXPECT_EQ(out.resumes(), Indices{1}) << "others pass it";
  ASSERT_EQ(out.plan().admit.size(), 1U);
  EXPECT_EQ(out.plan().admit[0].id, RequestId(8));
}

TEST(Preempting, AHeldHeadIsNoReasonToRotate) {
  Scene scene(100);
  scene.decoding(0, 90).since_start = Tokens(50);
  ParkedView& parked = scene.parked(60);
  parked.held = true;
  parked.parked_at = Micros(0);
  EXPECT_EQ(scene.parks(), Seats{});
}

TEST(Preempting, FindFaultKnowsWhoIsHeld) {
  Scene scene(100);
  scene.decoding(0, 20);
  scene.parked(20);
  scene.waiting(7, 10);
  const Plan good = scene.plan();
  ASSERT_EQ(good.resume.size() + good.admit.size(), 2U);
  const auto fault = [&] { return find_fault(scene.view(), good).value_or("nothing"); };
  EXPECT_EQ(fault(), "nothing");
  scene.hold_waiting(0);
  EXPECT_EQ(fault(), "admits a request that is held");
  scene.hold_parked(0);
  EXPECT_EQ(fault(), "resumes what is held");
  scene.hold_running(0);
  EXPECT_EQ(fault(), "leaves in the pool what is held");
}

TEST(Preempting, FindFaultNamesBrokenParksAndResumes) {
  Scene scene(100);
  scene.decoding(0, 50);
  scene.decoding(1, 20);
  scene.parked(40);
  scene.view().ram_left = Bytes(300);
  const Plan good = scene.plan();
  const auto fault = [&](auto plant) {
    Plan plan = good;
    plan.clear();
    plant(plan);
    return find_fault(scene.view(), plan).value_or("nothing");
  };
  EXPECT_EQ(fault([](Plan& p) { p.park = {{2, ParkMode::swap}}; }), "parks what is not running");
  EXPECT_EQ(fault([](Plan& p) {
              p.park = {{1, ParkMode::swap}, {1, ParkMode::swap}};
            }),
            "parks one sequence twice");
  EXPECT_EQ(fault([](Plan& p) {
              p.park = {{0, ParkMode::swap}};
            }),
            "parks more bytes than the budget has left");
  EXPECT_EQ(fault([](Plan& p) { p.park = {{0, ParkMode::recompute}}; }), "nothing");
  EXPECT_EQ(fault([](Plan& p) {
              p.park = {{1, ParkMode::swap}};
              p.run = {{1, Tokens(1)}};
            }),
            "runs what it parks");
  EXPECT_EQ(fault([](Plan& p) { p.resume = {{1, Seat(2)}}; }), "resumes what is not parked");
  EXPECT_EQ(fault([](Plan& p) {
              p.resume = {{0, Seat(2)}, {0, Seat(3)}};
            }),
            "resumes one sequence twice");
  EXPECT_EQ(fault([](Plan& p) { p.resume = {{0, Seat(1)}}; }), "resumes to seat 1, which is taken");
  EXPECT_EQ(fault([](Plan& p) { p.resume = {{0, Seat(4)}}; }), "resumes to seat 4, which is none");
  EXPECT_EQ(fault([](Plan& p) {
              p.resume = {{0, Seat(2)}};
            }),
            "runs more rows than cells are free");
  scene.view().can_swap = false;
  EXPECT_EQ(fault([](Plan& p) { p.park = {{1, ParkMode::swap}}; }), "swaps what cannot be moved");
}

}  // namespace
}  // namespace fermata::policy
