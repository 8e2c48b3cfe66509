// Idle conversations made everybody else slower: each row of a prompt looked at all of their cells.
#include "unit/policy/scene.h"

namespace fermata::policy {
namespace {

using Seats = std::vector<Seat>;

class Clearing : public ::testing::Test {
 protected:
  Clearing() { scene_.view().clears_idle = true; }
  SeatView& idle(int seat, std::int64_t last_used, std::int64_t rows_since = 64) {
    SeatView& view = scene_.idle(seat, 1000, last_used).seat(seat);
    view.is_kept = true;
    view.rows_since = Tokens(rows_since);
    return view;
  }
  const Seats& evicted() { return scene_.plan().evict; }

  Scene scene_{8000, 5};
};

TEST_F(Clearing, OneATickTheOneUnusedForLongestFirst) {
  idle(0, 7);
  idle(1, 3);
  scene_.reading(2, 100, 10);
  EXPECT_EQ(evicted(), Seats{Seat(1)});
}

TEST_F(Clearing, NobodyLeavesWhileNobodyElseComputes) {
  idle(0, 7, 10'000);
  EXPECT_EQ(evicted(), Seats{});
}

TEST_F(Clearing, StreamsSkipWhatIsNotTheirs) {
  idle(0, 7, 10'000);
  scene_.decoding(2, 100);
  EXPECT_EQ(evicted(), Seats{});
}

TEST_F(Clearing, NotBeforeItPays) {
  idle(0, 7, 62);
  scene_.reading(2, 100, 1);
  EXPECT_EQ(evicted(), Seats{}) << "with the row of this step 63";
  scene_.seat(0).rows_since = Tokens(63);
  EXPECT_EQ(evicted(), Seats{Seat(0)});
}

TEST_F(Clearing, APromptThatIsLongEnoughPaysAtOnce) {
  idle(0, 7, 0);
  scene_.reading(2, 0, 400);
  EXPECT_EQ(evicted(), Seats{Seat(0)});
}

TEST_F(Clearing, StreamsDoNotWaitForLongCopies) {
  idle(0, 7).uncopied = Tokens(5 * 256);
  scene_.decoding(2, 100);
  scene_.reading(3, 100, 10);
  EXPECT_EQ(evicted(), Seats{});
  scene_.seat(0).uncopied = Tokens(4 * 256);
  EXPECT_EQ(evicted(), Seats{Seat(0)});
  scene_.seat(0).uncopied = Tokens(5 * 256);
  scene_.running(0).phase = Phase::prefill;
  scene_.running(0).rows_left = Tokens(10);
  EXPECT_EQ(evicted(), Seats{Seat(0)}) << "nobody is kept waiting";
}

TEST_F(Clearing, WhatWouldBeLostOrFreesNothingStays) {
  idle(0, 7).is_kept = false;
  idle(1, 3).exclusive = Tokens(0);
  scene_.reading(2, 100, 10);
  EXPECT_EQ(evicted(), Seats{});
}

TEST_F(Clearing, OnlyWhereItIsAskedForAndRowsLookAtAllCells) {
  idle(0, 7);
  scene_.reading(2, 100, 10);
  scene_.view().clears_idle = false;
  EXPECT_EQ(evicted(), Seats{});
  scene_.view().clears_idle = true;
  scene_.view().layout = Layout::split;
  EXPECT_EQ(evicted(), Seats{});
}

}  // namespace
}  // namespace fermata::policy
