#include "api/generation.h"

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

Outcome outcome(std::size_t prompt, std::int64_t cached, std::int64_t computed,
                std::int64_t predicted) {
  Outcome out;
  out.prompt = prompt;
  out.final.prompt_tokens = Tokens(cached + computed);
  out.final.timings.prompt_cached = Tokens(cached);
  out.final.timings.prompt_computed = Tokens(computed);
  out.final.timings.prompt_time = Micros(computed);
  out.final.timings.predicted = Tokens(predicted);
  out.final.parking.swaps = 1;
  return out;
}

// I2: of several prompts only the first was billed.
TEST(Total, CountsEachPromptOnceAndEveryToken) {
  const std::vector<Outcome> choices = {outcome(0, 2, 8, 5), outcome(0, 9, 1, 6),
                                        outcome(1, 0, 20, 7), outcome(1, 19, 1, 8)};
  const FinalEvent sum = total(choices);
  EXPECT_EQ(sum.prompt_tokens, Tokens(30));
  EXPECT_EQ(sum.timings.prompt_cached, Tokens(2));
  EXPECT_EQ(sum.timings.prompt_computed, Tokens(28));
  EXPECT_EQ(sum.timings.prompt_time, Micros(20));
  EXPECT_EQ(sum.timings.predicted, Tokens(26));
  EXPECT_EQ(sum.parking.swaps, 4);
}

}  // namespace
}  // namespace fermata::api
