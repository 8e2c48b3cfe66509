#include "policy/pace.h"

#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata::policy {
namespace {

// A machine whose steps cost the same every time.
struct Machine {
  std::int64_t decode_us = 10'000, per_sequence_us = 200, per_row_us = 100;

  Micros step(std::int32_t decode_rows, Tokens prefill_rows) const {
    const std::int64_t decode = decode_rows > 0 ? decode_us + decode_rows * per_sequence_us : 0;
    return Micros(decode + prefill_rows.value * per_row_us);
  }
};

Tokens allowance(const Pace& pace, std::int32_t decode_rows, Micros budget = Micros(0)) {
  return prefill_allowance(pace.rates(decode_rows), budget, {decode_rows, 1}, Tokens(2048));
}

// As the scheduler does it: now and then a step without prefill, else as much as is allowed.
Micros last_step(Pace& pace, const Machine& machine, std::int32_t decode_rows, int steps,
                 Micros budget = Micros(0)) {
  Micros took{0};
  for (int i = 0; i < steps; ++i) {
    const Tokens rows = i % 4 == 0 ? Tokens(0) : allowance(pace, decode_rows, budget);
    took = machine.step(decode_rows, rows);
    pace.observe(decode_rows, rows, took);
  }
  return took;
}

TEST(Pace, KnowsNothingAtFirst) {
  const Pace pace;
  EXPECT_EQ(pace.rates(1).decode_step, Micros(0));
  EXPECT_EQ(pace.rates(1).prefill_per_1k, Micros(0));
}

TEST(Pace, BesideOnePromptStepsComeToTakeLessThanTwoDecodeSteps) {
  for (std::int32_t decode_rows : {2, 4, 32}) {
    Pace pace;
    const Machine machine;
    const std::int64_t took = last_step(pace, machine, decode_rows, 60).value;
    const double aim = 1.5 * static_cast<double>(machine.step(decode_rows, Tokens(0)).value);
    EXPECT_NEAR(static_cast<double>(took), aim, 0.05 * aim);
  }
}

TEST(Pace, StepsComeToTakeTheirBudget) {
  Pace pace;
  const std::int64_t took = last_step(pace, {}, 4, 60, Micros(50'000)).value;
  EXPECT_NEAR(static_cast<double>(took), 50'000.0, 2'500.0);
}

TEST(Pace, FollowsAMachineThatBecomesSlower) {
  Pace pace;
  last_step(pace, {}, 4, 60);
  const Machine slower{20'000, 400, 300};
  const std::int64_t took = last_step(pace, slower, 4, 60).value;
  EXPECT_NEAR(static_cast<double>(took), 33'280.0, 1'664.0);
}

TEST(Pace, PromptsAloneTeachTheCostOfARow) {
  Pace pace;
  for (int i = 0; i < 5; ++i) pace.observe(0, Tokens(500), Micros(50'000));
  pace.observe(1, Tokens(0), Micros(10'000));
  EXPECT_EQ(pace.rates(1).prefill_per_1k, Micros(100'000));
  EXPECT_EQ(allowance(pace, 1), Tokens(100));
}

TEST(Pace, NumberThatWasNeverSeenBorrowsFromTheNearest) {
  Pace pace;
  pace.observe(2, Tokens(0), Micros(100));
  pace.observe(8, Tokens(0), Micros(300));
  EXPECT_EQ(pace.rates(1).decode_step, Micros(100));
  EXPECT_EQ(pace.rates(3).decode_step, Micros(100));
  EXPECT_EQ(pace.rates(7).decode_step, Micros(300));
  EXPECT_EQ(pace.rates(200).decode_step, Micros(300));
}

// Seven streams beside a long prompt froze for three steps: the only step that seven had decoded
// alone was an odd one, and nothing could correct it.
TEST(Pace, OneOddSampleDoesNotOutweighManyOfItsNeighbour) {
  Pace pace;
  pace.observe(7, Tokens(0), Micros(60'000));
  for (int i = 0; i < 40; ++i) pace.observe(8, Tokens(0), Micros(30'000));
  EXPECT_LT(pace.rates(7).decode_step, Micros(37'000));
}

// Eight prompts came to a server that had just started: the cost of a decode step was guessed too
// low, nothing corrected it while prompts waited, and the last of them waited for 17 seconds.
TEST(Pace, WhatIsNotKnownIsMeasuredBeforePromptsAreCut) {
  Pace pace;
  EXPECT_FALSE(pace.rates(0).decode_unknown) << "nobody decodes";
  EXPECT_TRUE(pace.rates(1).decode_unknown);
  pace.observe(1, Tokens(10), Micros(90'000));
  EXPECT_TRUE(pace.rates(1).decode_unknown) << "a step with a prompt does not tell";
  pace.observe(1, Tokens(0), Micros(10'000));
  EXPECT_FALSE(pace.rates(1).decode_unknown);
  EXPECT_FALSE(pace.rates(2).decode_unknown) << "near enough";
  EXPECT_TRUE(pace.rates(3).decode_unknown);
  EXPECT_EQ(pace.rates(3).decode_step, Micros(10'000)) << "the best there is";
}

TEST(Pace, LastNumberStandsForAllLarger) {
  Pace pace;
  pace.observe(10'000, Tokens(0), Micros(700));
  EXPECT_EQ(pace.rates(256).decode_step, Micros(700));
  EXPECT_EQ(pace.rates(std::numeric_limits<std::int32_t>::max()).decode_step, Micros(700));
}

TEST(PrefillAllowance, IsTheFirstPieceAsLongAsNothingIsKnown) {
  EXPECT_EQ(prefill_allowance({}, Micros(0), {1, 1}, Tokens(512)), Tokens(16));
  EXPECT_EQ(prefill_allowance({Micros(10), Micros(0)}, Micros(0), {1, 1}, Tokens(512)), Tokens(16));
  EXPECT_EQ(prefill_allowance({Micros(0), Micros(10)}, Micros(0), {1, 1}, Tokens(512)), Tokens(16));
  EXPECT_EQ(prefill_allowance({}, Micros(0), {1, 1}, Tokens(3)), Tokens(3));
}

TEST(PrefillAllowance, SharesTheTimeBetweenThoseWhoReadAndThoseWhoSpeak) {
  // Seven prompts that came just after the first waited behind it for seconds: it had half the
  // time.
  const Rates rates{.decode_step = Micros(1000), .prefill_per_1k = Micros(100'000)};
  const auto rows = [&](std::int32_t decoding, std::int32_t prompts) {
    return prefill_allowance(rates, Micros(0), {decoding, prompts}, Tokens(512)).value;
  };
  EXPECT_EQ(rows(7, 1), 5) << "half of the step";
  EXPECT_EQ(rows(2, 2), 10);
  EXPECT_EQ(rows(2, 6), 30);
  EXPECT_EQ(rows(1, 7), 40) << "up to four times";
}

TEST(PrefillAllowance, IsTheWholeBatchWhenNobodyDecodes) {
  EXPECT_EQ(prefill_allowance({}, Micros(1), {0, 1}, Tokens(512)), Tokens(512));
  EXPECT_EQ(prefill_allowance({Micros(10), Micros(1000)}, Micros(1), {0, 1}, Tokens(512)),
            Tokens(512));
}

TEST(PrefillAllowanceDeathTest, AsksForRoom) {
  EXPECT_DEATH((void)prefill_allowance({}, Micros(0), {1, 1}, Tokens(0)), "no row left");
}

struct Step {
  std::int32_t decode_rows;
  std::int64_t prefill_rows, took_us;
};

TEST(Pace, LearnsWhatItCostsToMoveASequence) {
  Pace pace;
  pace.observe_move(Bytes(0), Micros(5));
  EXPECT_EQ(pace.rates(1).move_per_mib, Micros(0)) << "not known yet";
  pace.observe_move(Bytes(4 << 20), Micros(800));
  EXPECT_EQ(pace.rates(1).move_per_mib, Micros(200));
  pace.observe_move(Bytes(1 << 20), Micros(400));
  EXPECT_EQ(pace.rates(1).move_per_mib, Micros(250));
}

RC_GTEST_PROP(PaceProperty, AllowanceIsNeverNoneNorMoreThanTheBatch, ()) {
  Pace pace, again;
  const int steps = *rc::gen::inRange(0, 20);
  for (int i = 0; i < steps; ++i) {
    const Step step{*rc::gen::inRange(0, 300), *rc::gen::inRange<std::int64_t>(0, 5000),
                    *rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)};
    pace.observe(step.decode_rows, Tokens(step.prefill_rows), Micros(step.took_us));
    again.observe(step.decode_rows, Tokens(step.prefill_rows), Micros(step.took_us));
  }
  const auto decode_rows = *rc::gen::inRange(0, 300);
  const Rates rates = pace.rates(decode_rows);
  RC_ASSERT(rates.decode_step >= Micros(0) && rates.prefill_per_1k >= Micros(0));
  RC_ASSERT(rates.decode_step == again.rates(decode_rows).decode_step);
  RC_ASSERT(rates.prefill_per_1k == again.rates(decode_rows).prefill_per_1k);
  const Tokens batch_left{*rc::gen::inRange(1, 4096)};
  const Micros budget{*rc::gen::inRange<std::int64_t>(0, 3'600'000'000)};
  const Company company{*rc::gen::inRange(0, 300), *rc::gen::inRange(0, 300)};
  const Tokens rows = prefill_allowance(rates, budget, company, batch_left);
  RC_ASSERT(rows >= Tokens(1) && rows <= batch_left);
}

TEST(CopyPace, CopiesTakeAThirtySecondOfTheTime) {
  CopyPace pace;
  EXPECT_EQ(pace.blocks(), 1) << "nothing is known: the first is tried";
  Micros copying{0}, stepping{0};
  for (int step = 0; step < 1000; ++step) {
    pace.stepped(Micros(10'000));
    stepping += Micros(10'000);
    const std::int32_t blocks = pace.blocks();
    EXPECT_LE(blocks, 1) << "no bursts of blocks that are longer than a share";
    if (blocks == 0) continue;
    pace.copied(Micros(1000) * blocks, blocks);
    copying += Micros(1000) * blocks;
  }
  EXPECT_NEAR(static_cast<double>(copying.value) / static_cast<double>(stepping.value), 1.0 / 32,
              0.002);
}

TEST(CopyPace, ShortBlocksBesideLongStepsComeSeveralAtATime) {
  CopyPace pace;
  pace.copied(Micros(100), 1);
  pace.stepped(Micros(320'000));
  EXPECT_GT(pace.blocks(), 50);
  pace.copied(Micros(11'000), 64);
  EXPECT_EQ(pace.blocks(), 0);
}

}  // namespace
}  // namespace fermata::policy
