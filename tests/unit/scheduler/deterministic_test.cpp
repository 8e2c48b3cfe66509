// The deterministic mode on the fake engine, whose text depends on the shapes of the computation.
#include "sim/rig.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

using sim::Ask;
using sim::Client;
using sim::make_deterministic;
using sim::Rig;
using sim::RigSpec;
using sim::solo_run;

constexpr Tokens chunk{8};

RigSpec deterministic(std::int32_t seats = 2) {
  RigSpec spec;
  make_deterministic(spec);
  spec.geometry.n_parallel = seats;
  spec.geometry.n_ctx = Tokens(128 * seats);
  spec.engine.n_ubatch = chunk;
  spec.scheduler.bytes_per_token = Bytes(24) + engine::state_bytes_per_cell;
  return spec;
}

std::string alone(const RigSpec& spec, const Ask& ask) {
  return solo_run(spec.model, ask, Tokens(128), chunk).text;
}

// Ticks until the client has so many tokens.
void run_until(Rig& rig, Client& client, std::size_t tokens) {
  for (int i = 0; i < 10'000 && client.tokens.size() < tokens; ++i) {
    rig.tick();
    client.read();
  }
  ASSERT_EQ(client.tokens.size(), tokens);
}

TEST(Deterministic, APromptIsComputedInChunksFromPositionZero) {
  Rig rig(deterministic());
  const auto client = rig.submit({.prompt = std::string(20, 'p'), .max_tokens = 9});
  run_until(rig, *client, 3);
  std::vector<std::int32_t> expected(16, 8);
  expected.insert(expected.end(), 4, 4);
  expected.insert(expected.end(), 2, 1);
  EXPECT_EQ(rig.engine().shape_stamps(Seat(0)), expected);
}

TEST(Deterministic, ARecomputedSequenceHasTheShapesOfTheFirstTime) {
  RigSpec spec = deterministic();
  spec.scheduler.preempt_ram = Bytes(0);
  spec.scheduler.preempt.every = Tokens(4);
  const Ask ask{.prompt = std::string(20, 'p'), .max_tokens = 30};
  Rig rig(spec), quiet(deterministic());
  const auto client = rig.submit(ask), undisturbed = quiet.submit(ask);
  // Parked after 4, 8, 12, 16 and 20 tokens.
  run_until(rig, *client, 22);
  run_until(quiet, *undisturbed, 22);
  EXPECT_EQ(rig.engine().shape_stamps(Seat(0)), quiet.engine().shape_stamps(Seat(0)));
  EXPECT_EQ(rig.scheduler().stats().parks_recompute.value(), 5U);
  rig.run({client.get()});
  EXPECT_EQ(client->text, alone(spec, ask));
  EXPECT_TRUE(client->final->parking.same_shapes);
  EXPECT_GT(client->final->parking.recomputed, Tokens(0));
}

TEST(Deterministic, WithoutItARecomputedReplyDiffers) {  // Else the test above could not fail.
  RigSpec spec;
  spec.model.shape_matters = true;
  spec.scheduler.preempt_ram = Bytes(0);
  spec.scheduler.preempt.every = Tokens(4);
  const Ask ask{.prompt = std::string(20, 'p'), .max_tokens = 30};
  Rig rig(spec);
  const auto client = rig.submit(ask);
  rig.run({client.get()});
  spec.scheduler.preempt.every = Tokens(0);
  Rig quiet(spec);
  const auto undisturbed = quiet.submit(ask);
  quiet.run({undisturbed.get()});
  EXPECT_NE(client->text, undisturbed->text);
  EXPECT_FALSE(client->final->parking.same_shapes);
}

TEST(Deterministic, CompanyAndItsCancelsChangeNothing) {
  const RigSpec spec = deterministic(4);
  const Ask ask{.prompt = std::string(50, 'p'), .max_tokens = 40};
  Rig rig(spec);
  std::vector<std::unique_ptr<Client>> company;
  const auto client = rig.submit(ask);
  for (int i = 0; client->n_final == 0; ++i) {
    if (i % 7 == 0) company.push_back(rig.submit({.prompt = std::string(30, 'q')}));
    rig.tick();
    client->read();
    if (i % 7 == 3) company.back()->channel->abandon();
  }
  EXPECT_EQ(client->text, alone(spec, ask));
}

TEST(Deterministic, OnlyWholeChunksOfAPromptAreReused) {
  const RigSpec spec = deterministic(1);
  Rig rig(spec);
  const Ask first{.prompt = std::string(20, 'p'), .max_tokens = 20};
  const auto client = rig.submit(first);
  rig.run({client.get()});
  const Ask next{.prompt = first.prompt + client->text + "and more", .max_tokens = 20};
  const auto follower = rig.submit(next);
  rig.run({follower.get()});
  EXPECT_EQ(follower->final->timings.prompt_cached, Tokens(16));
  EXPECT_EQ(follower->text, alone(spec, next));
}

TEST(Deterministic, AWindowsCellsAreComputedAgainNotMoved) {
  RigSpec spec = deterministic();
  spec.model.kind = engine::MemoryKind::sliding_window;
  spec.scheduler.preempt_ram.reset();
  spec.scheduler.preempt.every = Tokens(4);
  const Ask ask{.prompt = std::string(20, 'p'), .max_tokens = 30};
  Rig rig(spec);
  const auto client = rig.submit(ask);
  rig.run({client.get()});
  EXPECT_EQ(client->text, alone(spec, ask));
  EXPECT_EQ(rig.scheduler().stats().parks_swap.value(), 0U);
  EXPECT_GT(rig.scheduler().stats().parks_recompute.value(), 0U);
}

TEST(DeterministicDeathTest, NeedsAnEngineThatComputesSequencesApart) {
  RigSpec pooled = deterministic();
  pooled.geometry.layout = Layout::pooled;
  EXPECT_DEATH(Rig{pooled}, "cannot be deterministic");
  RigSpec together = deterministic();
  together.engine.one_sequence_per_ubatch = false;
  EXPECT_DEATH(Rig{together}, "cannot be deterministic");
}

}  // namespace
}  // namespace fermata
