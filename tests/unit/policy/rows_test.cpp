// Which rows plan_worst_case runs in a step.
#include "policy/policy.h"

#include <gtest/gtest.h>

namespace fermata::policy {
namespace {

RunningView decoding(std::uint64_t id) { return {RequestId(id), Seat(), Phase::decode, Tokens(0)}; }
RunningView reading(std::uint64_t id, std::int64_t prompt_left) {
  return {RequestId(id), Seat(), Phase::prefill, Tokens(prompt_left)};
}
RunningView blocked(RunningView view) {
  view.blocked = true;
  return view;
}

struct Rows {
  std::uint64_t id;
  std::int64_t rows;
  friend bool operator==(const Rows&, const Rows&) = default;
};

// Ten microseconds a decode step, one a row of prefill.
constexpr Rates known{Micros(10), Micros(1000)};

std::vector<Rows> rows(const std::vector<RunningView>& running, std::int64_t batch_max,
                       const Rates& rates = known, Micros step_budget = Micros(0)) {
  View view;
  view.batch_max = Tokens(batch_max);
  view.rates = rates;
  view.step_budget = step_budget;
  view.running = running;
  Plan plan;
  plan_worst_case(view, plan);
  EXPECT_EQ(find_fault(view, plan).value_or(""), "");
  std::vector<Rows> out;
  for (const Run& run : plan.run) out.push_back({running[run.running].id.value, run.rows.value});
  return out;
}

using List = std::vector<Rows>;

TEST(Rows, EverySequenceThatDecodesGetsOneFirst) {
  EXPECT_EQ(rows({reading(1, 5), decoding(2), decoding(3)}, 100), (List{{2, 1}, {3, 1}, {1, 5}}));
}

TEST(Rows, PromptsFollowInOrderOfArrival) {
  EXPECT_EQ(rows({reading(1, 30), reading(2, 30), reading(3, 30)}, 80),
            (List{{1, 30}, {2, 30}, {3, 20}}));
}

TEST(Rows, BatchIsNeverExceeded) {
  EXPECT_EQ(rows({reading(1, 500)}, 64), (List{{1, 64}}));
  EXPECT_EQ(rows({decoding(1), decoding(2), reading(3, 9)}, 2), (List{{1, 1}, {2, 1}}));
  EXPECT_EQ(rows({decoding(1), decoding(2), decoding(3)}, 2), (List{{1, 1}, {2, 1}}));
  EXPECT_EQ(rows({decoding(1), reading(2, 9)}, 2), (List{{1, 1}, {2, 1}}));
}

TEST(Rows, ClientThatDoesNotReadGetsNone) {
  EXPECT_EQ(rows({blocked(decoding(1)), blocked(reading(2, 5)), decoding(3)}, 100), (List{{3, 1}}));
  EXPECT_EQ(rows({blocked(decoding(1))}, 100), List{});
}

TEST(Rows, PromptIsCutToTheStepsTimeWhileAnybodyDecodes) {
  // By default prompts have as long as each stream does.
  EXPECT_EQ(rows({decoding(1), reading(2, 500)}, 512), (List{{1, 1}, {2, 10}}));
  EXPECT_EQ(rows({decoding(1), reading(2, 500)}, 512, known, Micros(40)), (List{{1, 1}, {2, 30}}));
  // A blocked one does not decode in this step.
  EXPECT_EQ(rows({blocked(decoding(1)), reading(2, 500)}, 512), (List{{2, 500}}));
}

TEST(Rows, PromptAdvancesHoweverSmallTheBudget) {
  EXPECT_EQ(rows({decoding(1), reading(2, 500)}, 512, known, Micros(1)), (List{{1, 1}, {2, 1}}));
}

TEST(Rows, AllowanceIsForAllPromptsTogether) {
  EXPECT_EQ(rows({decoding(1), decoding(4), reading(2, 4), reading(3, 500)}, 512),
            (List{{1, 1}, {4, 1}, {2, 4}, {3, 6}}));
}

TEST(Rows, NothingRunsNothingIsPlanned) { EXPECT_EQ(rows({}, 512), List{}); }

TEST(Rows, ReusedPlanIsClearedFirst) {
  Plan plan;
  plan.evict.emplace_back(1);
  plan.admit.push_back({});
  plan.run.push_back({7, Tokens(7)});
  View view;
  view.batch_max = Tokens(8);
  plan_worst_case(view, plan);
  EXPECT_TRUE(plan.evict.empty() && plan.admit.empty() && plan.run.empty());
}

}  // namespace
}  // namespace fermata::policy
