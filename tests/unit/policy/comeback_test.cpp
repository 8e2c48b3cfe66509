// A change of the geometry whose copy failed left a request parked under the admission-only policy,
// which never looked at who is parked: the client waited for ever.
#include "policy/policy.h"

#include <vector>

#include <gtest/gtest.h>

namespace fermata::policy {
namespace {

class Pool {
 public:
  explicit Pool(std::int64_t cells, int seats = 3) {
    view_.cells = view_.cells_free = view_.cells_unpromised = Tokens(cells);
    view_.batch_max = Tokens(64);
    for (int s = 0; s < seats; ++s) seats_.push_back({Seat(s), SeatUse::empty, {}, {}, {}});
  }
  void hold(int seat, SeatUse use, std::int64_t length) {
    SeatView& view = seats_[static_cast<std::size_t>(seat)];
    view.use = use;
    view.length = view.exclusive = Tokens(length);
    view_.cells_free -= Tokens(length);
    view_.cells_unpromised -= Tokens(length);
    if (use == SeatUse::busy) view_.cells_busy += Tokens(length);
  }
  ParkedView& park(std::uint64_t id, std::int64_t need, std::uint64_t group = 0) {
    parked_.reserve(16);
    ParkedView parked;
    parked.id = RequestId(id);
    parked.mode = ParkMode::recompute;
    parked.group = GroupId(group);
    parked.need = Tokens(need);
    parked_.push_back(parked);
    return parked_.back();
  }
  void wait(std::uint64_t id, std::int64_t need) {
    none_.resize(seats_.size());
    WaitingView waiting;
    waiting.id = RequestId(id);
    waiting.prompt = waiting.need = Tokens(need);
    waiting_.push_back(waiting);
  }

  const Plan& plan() {
    for (WaitingView& waiting : waiting_) waiting.prefixes = none_;
    view_.seats = seats_;
    view_.parked = parked_;
    view_.waiting = waiting_;
    plan_worst_case(view_, plan_);
    EXPECT_EQ(find_fault(view_, plan_).value_or(""), "");
    return plan_;
  }
  std::vector<std::size_t> resumed() {
    std::vector<std::size_t> out;
    for (const Resume& resume : plan().resume) out.push_back(resume.parked);
    return out;
  }

 private:
  View view_;
  std::vector<SeatView> seats_;
  std::vector<ParkedView> parked_;
  std::vector<WaitingView> waiting_;
  std::vector<PrefixView> none_;
  Plan plan_;
};

using Indices = std::vector<std::size_t>;

TEST(ComingBack, ParkedOnesGoBeforeThoseWhoWait) {
  Pool pool(100);
  pool.park(1, 60);
  pool.wait(2, 60);
  EXPECT_EQ(pool.resumed(), Indices{0});
  EXPECT_TRUE(pool.plan().admit.empty()) << "its cells are promised";
}

TEST(ComingBack, IdleConversationsMakeRoom) {
  Pool pool(100);
  for (int seat = 0; seat < 3; ++seat) pool.hold(seat, SeatUse::idle, 30);
  pool.park(1, 90);
  EXPECT_EQ(pool.resumed(), Indices{0});
  EXPECT_EQ(pool.plan().evict.size(), 3U);
}

TEST(ComingBack, NobodyPassesTheFirst) {
  Pool pool(100);
  pool.hold(0, SeatUse::busy, 50);
  pool.park(1, 60);
  pool.park(2, 10);
  pool.wait(3, 10);
  EXPECT_EQ(pool.resumed(), Indices{});
  EXPECT_TRUE(pool.plan().admit.empty());
}

TEST(ComingBack, ChoicesOfOneRequestComeTogetherOrNotAtAll) {
  Pool pool(100);
  pool.hold(0, SeatUse::busy, 10);
  pool.park(1, 20, 7);
  pool.park(2, 20, 7);
  EXPECT_EQ(pool.resumed(), (Indices{0, 1}));
  pool.hold(1, SeatUse::busy, 10);
  EXPECT_EQ(pool.resumed(), Indices{}) << "one seat is not enough";
}

TEST(ComingBack, ChoicesThatDoNotFitTogetherAnyMoreComeInPart) {
  Pool pool(100, 1);
  pool.park(1, 20, 7);
  pool.park(2, 20, 7);
  pool.wait(3, 10);
  EXPECT_EQ(pool.resumed(), Indices{0});
  EXPECT_TRUE(pool.plan().admit.empty());
}

TEST(ComingBack, WhoIsHeldOrWhoseSeatIsTakenIsPassed) {
  Pool pool(100);
  pool.hold(0, SeatUse::busy, 10);
  pool.park(1, 20).held = true;
  pool.park(2, 20).seat = Seat(0);
  pool.park(3, 20);
  EXPECT_EQ(pool.resumed(), Indices{2});
}

}  // namespace
}  // namespace fermata::policy
