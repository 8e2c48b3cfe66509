// Whom plan_worst_case seats, where, and at whose cost.
#include "unit/policy/world.h"

#include <gtest/gtest.h>

namespace fermata::policy {
namespace {

Plan plan(World& world) {
  Plan out;
  const View view = world.view();
  plan_worst_case(view, out);
  EXPECT_EQ(find_fault(view, out).value_or(""), "");
  return out;
}

std::vector<std::uint64_t> admitted(const Plan& plan) {
  std::vector<std::uint64_t> out;
  for (const Admission& admission : plan.admit) out.push_back(admission.id.value);
  return out;
}

std::vector<std::int32_t> evicted(const Plan& plan) {
  std::vector<std::int32_t> out;
  for (Seat seat : plan.evict) out.push_back(seat.value);
  return out;
}

using Ids = std::vector<std::uint64_t>;
using Seats = std::vector<std::int32_t>;

TEST(Admission, SeatsInOrderAsLongAsThereAreSeats) {
  World world(2, 1000);
  for (std::uint64_t id : {5, 3, 4}) world.wait(id, "prompt", 10);
  const Plan first = plan(world);
  EXPECT_EQ(admitted(first), (Ids{5, 3}));
  EXPECT_NE(first.admit[0].seat, first.admit[1].seat);
  EXPECT_EQ(world.apply(first), "");
  EXPECT_EQ(admitted(plan(world)), Ids{});
}

TEST(Admission, NothingWaitsNothingHappens) {
  World world(2, 100);
  world.idle(0, "idle", 1);
  const Plan none = plan(world);
  EXPECT_TRUE(none.admit.empty() && none.evict.empty() && none.run.empty());
}

TEST(Admission, StartsOnlyWhatFitsInTheWorstCase) {
  World world(4, 100);
  world.wait(1, std::string(20, 'p'), 41);  // 60 cells
  world.wait(2, std::string(20, 'q'), 21);  // 40
  world.wait(3, "r", 1);
  EXPECT_EQ(admitted(plan(world)), (Ids{1, 2}));
}

TEST(Admission, LargeRequestWaitsForTheBusyAndNobodyPasses) {
  World world(4, 100);
  world.busy(0, "busy", 60);
  world.wait(1, std::string(30, 'p'), 21);  // 50 cells, 40 are left
  world.wait(2, "small", 2);
  EXPECT_EQ(admitted(plan(world)), Ids{});
  world.clear(0);
  EXPECT_EQ(admitted(plan(world)), (Ids{1, 2}));
}

TEST(Admission, UnlimitedReplyGetsTheWholePoolWhenItIsFree) {
  World world(4, 100);
  world.idle(0, std::string(50, 'x'), 1);
  world.idle(1, std::string(50, 'y'), 2);
  world.wait(1, "prompt", -1);
  const Plan all = plan(world);
  EXPECT_EQ(admitted(all), Ids{1});
  EXPECT_EQ(evicted(all), (Seats{0, 1}));
  EXPECT_EQ(world.apply(all), "");
}

TEST(Admission, PinnedRequestTakesItsSeatAndNoOther) {
  World world(3, 1000);
  world.idle(0, "the same prompt", 5);
  world.wait(1, "the same prompt and more", 10, Seat(2));
  const Plan pinned = plan(world);
  ASSERT_EQ(admitted(pinned), Ids{1});
  EXPECT_EQ(pinned.admit[0].seat, Seat(2));
  EXPECT_EQ(pinned.admit[0].reuse, Tokens(0));
}

TEST(Admission, PinnedRequestGoesOnFromItsOwnSeat) {
  World world(3, 1000);
  world.idle(2, "the same prompt", 5);
  world.wait(1, "the same prompt and more", 10, Seat(2));
  const Plan pinned = plan(world);
  ASSERT_EQ(admitted(pinned), Ids{1});
  EXPECT_EQ(pinned.admit[0].seat, Seat(2));
  EXPECT_EQ(pinned.admit[0].reuse, Tokens(15));
}

TEST(Admission, OthersPassAPinnedRequestWhoseSeatIsTaken) {
  World world(3, 1000);
  world.busy(1, "busy", 20);
  world.wait(1, "pinned", 10, Seat(1));
  world.wait(2, "free", 10);
  EXPECT_EQ(admitted(plan(world)), Ids{2});
  // Also when the seat was taken in this very tick.
  World other(3, 1000);
  other.wait(1, "pinned", 10, Seat(1));
  other.wait(2, "pinned too", 10, Seat(1));
  other.wait(3, "free", 10);
  EXPECT_EQ(admitted(plan(other)), (Ids{1, 3}));
}

TEST(Admission, PinnedRequestThatDoesNotFitHoldsTheLine) {
  World world(3, 100);
  world.busy(0, "busy", 60);
  world.wait(1, std::string(50, 'p'), 1, Seat(1));
  world.wait(2, "small", 1);
  EXPECT_EQ(admitted(plan(world)), Ids{});
}

// The process ended: the plan evicted a seat for one request and let the next go on from it.
TEST(Admission, PinnedRequestStartsAnewWhenItsSeatWasEvictedForAnother) {
  World world(3, 100);
  world.idle(2, std::string(60, 'p'), 1);
  world.wait(1, std::string(50, 'q'), 1);
  world.wait(2, std::string(20, 'p') + "x", 1, Seat(2));
  const Plan both = plan(world);
  EXPECT_EQ(evicted(both), Seats{2});
  ASSERT_EQ(admitted(both), (Ids{1, 2}));
  EXPECT_EQ(both.admit[1].reuse, Tokens(0));
  EXPECT_EQ(world.apply(both), "");
}

TEST(Admission, ContinuationTakesItsOwnSeatThoughOthersAreEmpty) {
  World world(3, 1000);
  world.idle(1, std::string(100, 'c'), 5);
  world.wait(1, std::string(100, 'c') + " next turn", 10);
  const Plan next = plan(world);
  ASSERT_EQ(admitted(next), Ids{1});
  EXPECT_EQ(next.admit[0].seat, Seat(1));
  EXPECT_EQ(next.admit[0].source, std::nullopt);
  EXPECT_EQ(next.admit[0].reuse, Tokens(100));
}

TEST(Admission, DivergentConversationSharesIntoAnEmptySeat) {
  World world(3, 1000);
  world.idle(1, std::string(20, 's') + std::string(80, 'a'), 5);
  world.wait(1, std::string(20, 's') + "other", 10);
  const Plan apart = plan(world);
  ASSERT_EQ(admitted(apart), Ids{1});
  EXPECT_EQ(apart.admit[0].seat, Seat(0));
  EXPECT_EQ(apart.admit[0].source, Seat(1));
  EXPECT_EQ(apart.admit[0].reuse, Tokens(20));
  EXPECT_EQ(world.apply(apart), "");
  EXPECT_EQ(world.text(1).size(), 100U);
}

TEST(Admission, DivergentConversationTakesTheSeatWhenNoneIsEmpty) {
  World world(2, 1000);
  world.idle(0, std::string(20, 's') + std::string(80, 'a'), 5);
  world.idle(1, "something else", 9);
  world.wait(1, std::string(20, 's') + "other", 10);
  const Plan over = plan(world);
  ASSERT_EQ(admitted(over), Ids{1});
  EXPECT_EQ(over.admit[0].seat, Seat(0));
  EXPECT_EQ(over.admit[0].source, std::nullopt);
  EXPECT_EQ(over.admit[0].reuse, Tokens(20));
}

TEST(Admission, BusyLenderIsSharedFrom) {
  World world(2, 200);
  world.busy(0, std::string(90, 's') + "one", 120);
  world.wait(1, std::string(90, 's') + "two", 50);  // 142 cells alone, 52 beside the lender
  const Plan shared = plan(world);
  ASSERT_EQ(admitted(shared), Ids{1});
  EXPECT_EQ(shared.admit[0].source, Seat(0));
  EXPECT_EQ(shared.admit[0].reuse, Tokens(90));
  EXPECT_EQ(world.apply(shared), "");
}

TEST(Admission, WithoutAPrefixAnEmptySeatIsTakenThenTheLongestUnused) {
  World world(3, 1000);
  world.idle(0, "aaa", 5);
  world.idle(1, "gone", 9);
  world.clear(1);
  world.idle(2, "bbb", 4);
  world.wait(1, "x", 1);
  world.wait(2, "y", 1);
  world.wait(3, "z", 1);
  const Plan three = plan(world);
  ASSERT_EQ(admitted(three), (Ids{1, 2, 3}));
  EXPECT_EQ(three.admit[0].seat, Seat(1));
  EXPECT_EQ(three.admit[1].seat, Seat(2));
  EXPECT_EQ(three.admit[2].seat, Seat(0));
}

TEST(Eviction, LongestUnusedGoFirstAndNoMoreThanNeeded) {
  World world(5, 100);
  world.idle(0, std::string(20, 'a'), 30);
  world.idle(1, std::string(20, 'b'), 10);
  world.idle(2, std::string(20, 'c'), 20);
  world.idle(3, std::string(20, 'd'), 40);
  world.wait(1, std::string(50, 'x'), 1);  // 20 cells are free
  const Plan two = plan(world);
  EXPECT_EQ(evicted(two), (Seats{1, 2}));
  EXPECT_EQ(admitted(two), Ids{1});
}

TEST(Eviction, TakingASeatFreesItsCellsToo) {
  World world(2, 100);
  world.idle(0, std::string(60, 'a'), 2);
  world.idle(1, std::string(40, 'b'), 1);
  world.wait(1, std::string(50, 'x'), 1, Seat(0));
  const Plan one = plan(world);
  EXPECT_EQ(admitted(one), Ids{1});
  EXPECT_EQ(evicted(one), Seats{});
  EXPECT_EQ(world.apply(one), "");
}

TEST(Eviction, NothingIsLostForARequestThatCannotStartYet) {
  World world(3, 100);
  world.busy(0, "busy", 80);
  world.idle(1, "idle", 1);
  world.wait(1, std::string(50, 'x'), 1);
  EXPECT_EQ(evicted(plan(world)), Seats{});
}

TEST(Eviction, LenderStaysThoughItIsTheLongestUnused) {
  World world(4, 100);
  world.idle(0, std::string(20, 's') + std::string(30, 'a'), 1);
  world.idle(1, std::string(30, 'b'), 9);
  world.wait(1, std::string(20, 's') + std::string(30, 'x'), 1);  // 30 new cells, 20 are free
  const Plan shared = plan(world);
  EXPECT_EQ(evicted(shared), Seats{1});
  ASSERT_EQ(admitted(shared), Ids{1});
  EXPECT_EQ(shared.admit[0].source, Seat(0));
  EXPECT_EQ(world.apply(shared), "");
}

TEST(Eviction, LenderOfThisPlanIsNotEvictedForTheNextRequest) {
  World world(4, 100);
  world.idle(0, std::string(20, 's') + std::string(30, 'a'), 1);
  world.idle(1, std::string(10, 'b'), 9);
  world.wait(1, std::string(20, 's') + std::string(5, 'x'), 1);
  world.wait(2, std::string(40, 'y'), 1);  // 35 are free, and 10 of seat 1
  const Plan both = plan(world);
  EXPECT_EQ(admitted(both), (Ids{1, 2}));
  EXPECT_EQ(evicted(both), Seats{1});
  EXPECT_EQ(world.apply(both), "");
}

TEST(Eviction, IdleSeatsThatShareCellsGoTogether) {
  World world(3, 100);
  world.idle(0, std::string(70, 's'), 1);
  world.idle_shared(1, 0, 70, "", 2);  // Nobody holds a cell alone.
  world.wait(1, std::string(90, 'x'), 1);
  const Plan all = plan(world);
  EXPECT_EQ(admitted(all), Ids{1});
  EXPECT_EQ(world.apply(all), "");
}

// The process ended: prefixes that several requests share were counted once for each of them.
TEST(Admission, SeveralShareOneIdlePromptThoughTheirSumIsMoreThanThePool) {
  World world(4, 256);
  world.idle(0, std::string(100, 's') + std::string(100, 'a'), 1);
  for (std::uint64_t id : {1, 2, 3}) {
    world.wait(id, std::string(100, 's') + static_cast<char>('0' + id), 10);  // 110 cells
  }
  const Plan three = plan(world);
  EXPECT_EQ(admitted(three), (Ids{1, 2, 3}));
  EXPECT_EQ(world.apply(three), "");
}

// The process ended: cells that an idle seat shares with a busy one were counted twice.
TEST(Admission, GoesOnFromAnIdleSeatWhoseCellsABusyOneHoldsToo) {
  World world(3, 256);
  world.busy(0, std::string(100, 's'), 150);
  world.idle_shared(1, 0, 100, "", 2);
  world.wait(1, std::string(100, 's') + "x", 50);  // 150 cells, 100 are there
  const Plan one = plan(world);
  EXPECT_EQ(admitted(one), Ids{1});
  EXPECT_EQ(world.apply(one), "");
}

TEST(Admission, SplitLayoutAsksForASeatOnly) {
  World world(2, 100, {.layout = Layout::split});
  world.idle(0, std::string(50, 'a'), 1);
  world.busy(1, std::string(40, 'b'), 49);
  world.wait(1, std::string(40, 'x'), -1);
  const Plan one = plan(world);
  ASSERT_EQ(admitted(one), Ids{1});
  EXPECT_EQ(one.admit[0].seat, Seat(0));
  EXPECT_EQ(evicted(one), Seats{});
}

TEST(Admission, MemoryWithoutCellsAsksForASeatOnly) {
  World world(2, 100, {.cells_per_token = false, .cuts_and_shares = false});
  world.idle(0, std::string(5000, 'a'), 1);
  world.busy(1, std::string(5000, 'b'), 9000);
  world.wait(1, std::string(5000, 'a') + "next", -1);
  const Plan one = plan(world);
  ASSERT_EQ(admitted(one), Ids{1});
  EXPECT_EQ(one.admit[0].reuse, Tokens(5000));
  EXPECT_EQ(evicted(one), Seats{});
}

}  // namespace
}  // namespace fermata::policy
