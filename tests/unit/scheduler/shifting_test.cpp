// Replies that go on when their window is full.
#include "sim/rig.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

using sim::Ask;
using sim::Client;
using sim::Rig;
using sim::RigSpec;
using sim::solo_run;

RigSpec shifting(std::int64_t n_ctx, std::int32_t n_parallel) {
  RigSpec spec;
  spec.geometry.n_ctx = Tokens(n_ctx);
  spec.geometry.n_parallel = n_parallel;
  spec.scheduler.context_shift = true;
  return spec;
}

Client alone(const RigSpec& spec, const Ask& ask) {
  return solo_run(spec.model, ask, spec.geometry.n_ctx, Tokens(0), true);
}

TEST(ContextShifts, AReplyGoesOnToItsLimit) {
  Rig rig(shifting(64, 1));
  const auto client = rig.submit({.prompt = "a prompt of thirty-two tokens...", .max_tokens = 300});
  rig.run({client.get()});
  EXPECT_EQ(client->final->reason, FinishReason::limit);
  EXPECT_TRUE(client->final->truncated);
  EXPECT_EQ(client->tokens.size(), 300U);
  EXPECT_EQ(client->final->timings.prompt_computed, Tokens(32));
  EXPECT_EQ(client->final->parking.recomputed, Tokens(0));
  EXPECT_GT(rig.scheduler().stats().context_shifts.value(), 5U);
}

TEST(ContextShifts, WithoutTheSettingAReplyEndsWithTheWindow) {
  RigSpec spec = shifting(64, 1);
  spec.scheduler.context_shift = false;
  Rig rig(spec);
  const auto client = rig.submit({.prompt = "prompt", .max_tokens = 300});
  rig.run({client.get()});
  EXPECT_EQ(client->final->reason, FinishReason::window);
  EXPECT_TRUE(client->final->truncated);
}

TEST(ContextShifts, AMemoryThatCannotShiftEndsWithTheWindow) {
  for (const auto kind : {engine::MemoryKind::sliding_window, engine::MemoryKind::hybrid,
                          engine::MemoryKind::recurrent}) {
    RigSpec spec = shifting(64, 1);
    spec.model.kind = kind;
    Rig rig(spec);
    const auto client = rig.submit({.prompt = "prompt", .max_tokens = 300});
    rig.run({client.get()});
    EXPECT_EQ(client->final->reason, FinishReason::window);
  }
}

TEST(ContextShifts, AReplyThatFitsIsNotTouched) {
  Rig rig(shifting(64, 1));
  const auto client = rig.submit({.prompt = "prompt", .max_tokens = 57});
  rig.run({client.get()});
  EXPECT_FALSE(client->final->truncated);
  EXPECT_EQ(rig.scheduler().stats().context_shifts.value(), 0U);
}

// "Park right after a context shift saved old K with new positions": the fake's next token depends
// on every cell and on the shape and the shifts it went through.
TEST(ContextShifts, ParksAtEveryStepChangeNoByte) {
  for (const Layout layout : {Layout::pooled, Layout::split}) {
    RigSpec spec = shifting(64, 1);
    spec.geometry.layout = layout;
    spec.model.shape_matters = true;
    spec.scheduler.preempt_ram.reset();
    const Ask ask{.prompt = "north", .max_tokens = 200, .n_keep = 3};
    Rig plain(spec);
    const auto unparked = plain.submit(ask);
    plain.run({unparked.get()});
    for (const std::int64_t every : {1, 3, 7}) {
      spec.scheduler.preempt.every = Tokens(every);
      Rig rig(spec);
      const auto client = rig.submit(ask);
      rig.run({client.get()});
      EXPECT_GT(client->final->parking.swaps, 20);
      EXPECT_EQ(client->final->parking.recomputes, 0);
      EXPECT_EQ(client->text, unparked->text) << "parked after each " << every;
    }
  }
}

TEST(ContextShifts, WhatIsComputedAgainIsDeclared) {
  RigSpec spec = shifting(64, 1);
  spec.scheduler.preempt_ram = Bytes(0);
  spec.scheduler.preempt.every = Tokens(7);
  const Ask ask{.prompt = "a prompt that is longer than half of it", .max_tokens = 200};
  Rig rig(spec);
  const auto client = rig.submit(ask);
  rig.run({client.get()});
  EXPECT_EQ(client->text, alone(spec, ask).text);
  EXPECT_GT(client->final->parking.recomputes, 20);
  EXPECT_GT(client->final->parking.recomputed, Tokens(0));
  EXPECT_EQ(client->final->timings.prompt_computed, Tokens(39));
}

TEST(ContextShifts, CompanyThatSharesCellsKeepsItsText) {
  RigSpec spec = shifting(128, 3);
  const Ask ask{.prompt = "the same prompt for all of them, which is rather long for the window",
                .max_tokens = 250,
                .temperature = 1.0F};
  Rig rig(spec);
  const auto clients = rig.submit(ask, 3);
  rig.run({clients[0].get(), clients[1].get(), clients[2].get()});
  for (std::size_t i = 0; i < 3; ++i) {
    Ask of = ask;
    of.seed += static_cast<std::uint32_t>(i);
    EXPECT_EQ(clients[i]->text, alone(spec, of).text) << i;
    EXPECT_EQ(clients[i]->final->reason, FinishReason::limit);
  }
  EXPECT_GT(rig.scheduler().stats().context_shifts.value(), 3U);
}

TEST(ContextShifts, ALaterRequestStartsFromWhatWasKeptOnly) {
  Rig rig(shifting(64, 1));
  const std::string prompt = "sixteen letters.";
  const auto first = rig.submit({.prompt = prompt, .max_tokens = 100, .n_keep = 8});
  rig.run({first.get()});
  const auto next = rig.submit({.prompt = prompt + first->text.substr(0, 10), .max_tokens = 4});
  rig.run({next.get()});
  EXPECT_EQ(next->final->timings.prompt_cached, Tokens(8));
  const std::string lost = prompt.substr(0, 8) + first->text.substr(first->text.size() - 20);
  const auto tail = rig.submit({.prompt = lost, .max_tokens = 4});
  rig.run({tail.get()});
  EXPECT_EQ(tail->final->timings.prompt_cached, Tokens(8));
}

}  // namespace
}  // namespace fermata
