// Fixed shapes: with View::chunk a prompt is computed in whole pieces and a reply row by row.
#include "policy/policy.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::policy {
namespace {

// Seat i holds lengths[i] tokens of a sequence that has prompt_left and replay_left rows to go.
struct Going {
  std::int64_t length, prompt_left, replay_left;
};

class Scene {
 public:
  explicit Scene(const std::vector<Going>& all, std::int64_t chunk = 10) {
    for (const Going& going : all) {
      const Seat seat{static_cast<std::int32_t>(seats_.size())};
      seats_.push_back({seat, SeatUse::busy, Tokens(going.length), Tokens(going.length), {}});
      RunningView running;
      running.id = RequestId(static_cast<std::uint64_t>(seat.value));
      running.seat = seat;
      running.rows_left = Tokens(going.prompt_left + going.replay_left);
      running.prompt_left = Tokens(going.prompt_left);
      running.replaying = going.replay_left > 0;
      running.phase = running.rows_left > Tokens(0) ? Phase::prefill : Phase::decode;
      running_.push_back(running);
    }
    view_.layout = Layout::split;
    view_.overcommit = true;
    view_.chunk = Tokens(chunk);
    view_.batch_max = Tokens(20) + Tokens(static_cast<std::int64_t>(all.size()));
    // Ten microseconds a decode step, one a row of prefill.
    view_.rates = {Micros(10), Micros(1000)};
    view_.seats = seats_;
    view_.running = running_;
  }

  View& view() { return view_; }
  RunningView& running(std::size_t i) { return running_[i]; }
  // Rows by sequence, 0: it does not run.
  std::vector<std::int64_t> rows() {
    Plan plan;
    plan_preempting(view_, plan);
    EXPECT_EQ(find_fault(view_, plan).value_or(""), "");
    std::vector<std::int64_t> out(running_.size(), 0);
    for (const Run& run : plan.run) out[run.running] = run.rows.value;
    return out;
  }
  std::string fault(std::int64_t rows) {
    Plan plan;
    plan.run = {{0, Tokens(rows)}};
    return find_fault(view_, plan).value_or("");
  }

 private:
  View view_;
  std::vector<SeatView> seats_;
  std::vector<RunningView> running_;
};

using Rows = std::vector<std::int64_t>;

TEST(Chunks, APromptGetsItsWholeNextPieceAndNoMore) {
  EXPECT_EQ(Scene({{0, 35, 0}}).rows(), Rows{10});
  EXPECT_EQ(Scene({{20, 15, 0}}).rows(), Rows{10});
  EXPECT_EQ(Scene({{30, 5, 0}}).rows(), Rows{5});
}

TEST(Chunks, AReplyIsComputedAgainRowByRow) {
  EXPECT_EQ(Scene({{20, 0, 50}}).rows(), Rows{1});
  EXPECT_EQ(Scene({{23, 0, 50}}).rows(), Rows{1});
  EXPECT_EQ(Scene({{10, 7, 50}}).rows(), Rows{7}) << "its prompt first, in the same pieces";
}

TEST(Chunks, TheFirstPromptAdvancesWhateverTheBudgetIs) {
  Scene scene({{12, 0, 0}, {0, 35, 0}, {0, 35, 0}});
  scene.view().step_budget = Micros(1);
  EXPECT_EQ(scene.rows(), (Rows{1, 10, 0}));
}

TEST(Chunks, OthersFollowAsFarAsBudgetAndBatchGo) {
  Scene scene({{12, 0, 0}, {0, 35, 0}, {0, 35, 0}, {0, 35, 0}});
  scene.view().batch_max = Tokens(100);
  scene.view().step_budget = Micros(10 + 25);
  EXPECT_EQ(scene.rows(), (Rows{1, 10, 10, 0})) << "five rows are no whole piece";
  scene.view().batch_max = Tokens(15);
  EXPECT_EQ(scene.rows(), (Rows{1, 10, 0, 0}));
}

TEST(Chunks, RepliesThatAreComputedAgainRunBesideThePrompts) {
  EXPECT_EQ(Scene({{0, 35, 0}, {20, 0, 9}, {12, 0, 0}, {20, 0, 9}}).rows(), (Rows{10, 1, 1, 1}));
}

TEST(Chunks, WhoDoesNotReadDoesNotRun) {
  Scene scene({{0, 35, 0}, {20, 0, 9}});
  scene.running(0).blocked = scene.running(1).blocked = true;
  EXPECT_EQ(scene.rows(), (Rows{0, 0}));
}

TEST(Chunks, StepsThatFindNoCellsKeepTheirPieces) {
  Scene scene({{0, 35, 0}, {0, 35, 0}});
  scene.view().no_room = 3;
  EXPECT_EQ(scene.rows().front(), 10);
}

TEST(Chunks, OtherShapesAreFaults) {
  const std::string fault = "runs rows in another shape than alone";
  EXPECT_EQ(Scene({{10, 25, 0}}).fault(10), "");
  EXPECT_EQ(Scene({{10, 25, 0}}).fault(9), fault);
  EXPECT_EQ(Scene({{10, 25, 0}}).fault(11), fault);
  EXPECT_EQ(Scene({{10, 5, 0}}).fault(5), "");
  EXPECT_EQ(Scene({{10, 5, 0}}).fault(4), fault);
  EXPECT_EQ(Scene({{10, 5, 3}}).fault(6), fault) << "a reply's row in a prompt's piece";
  EXPECT_EQ(Scene({{15, 20, 0}}).fault(5), fault) << "half a piece was computed before";
  EXPECT_EQ(Scene({{15, 0, 20}}).fault(1), "");
  EXPECT_EQ(Scene({{15, 0, 20}}).fault(2), fault);
  EXPECT_EQ(Scene({{15, 0, 20}}, 0).fault(20), "") << "free shapes";
}

TEST(Chunks, ATurnIsAtLeastWhatComingBackRowByRowTakes) {
  Scene scene({{40, 0, 0}});
  ParkedView parked;
  parked.id = RequestId(9);
  parked.cells = Tokens(5);
  scene.view().parked = {&parked, 1};
  scene.view().preempt.quantum = Tokens(8);
  scene.view().preempt.rotate_after = Micros(0);
  Plan plan;
  scene.running(0).since_start = Tokens(39);
  plan_preempting(scene.view(), plan);
  EXPECT_TRUE(plan.park.empty());
  scene.running(0).since_start = Tokens(40);
  plan_preempting(scene.view(), plan);
  EXPECT_EQ(plan.park.size(), 1U);
}

}  // namespace
}  // namespace fermata::policy
