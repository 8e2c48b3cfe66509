// The contract of engine/engine.h, seen from outside.
#include "conformance/engine_conformance.h"

#include "base/random.h"

#include <atomic>
#include <map>
#include <thread>

namespace fermata::engine {
namespace {

constexpr int reply = 8;  // Tokens that tell whether two sequences remember the same.

TEST_P(EngineConformance, LimitsHoldWhatWasAskedFor) {
  Bench b = bench(1000, 3);
  const EngineLimits& limits = b.engine().limits();
  EXPECT_EQ(b.engine().memory_kind(), GetParam().kind);
  EXPECT_EQ(limits.seats, 3);
  EXPECT_GE(limits.cells, Tokens(1000));
  EXPECT_GE(limits.window, GetParam().layout == Layout::pooled ? Tokens(1000) : Tokens(333));
  EXPECT_EQ(limits.batch, Tokens(64));
  EXPECT_EQ(limits.ubatch, Tokens(16));
  EXPECT_EQ(b.engine().geometry().n_ctx, limits.cells);
  EXPECT_EQ(b.engine().geometry().layout, GetParam().layout);
  EXPECT_EQ(b.engine().capabilities().truncate_anywhere, GetParam().kind == MemoryKind::attention);
  EXPECT_EQ(b.engine().capabilities().share_prefix,
            GetParam().kind == MemoryKind::attention && GetParam().layout == Layout::pooled);
  EXPECT_EQ(b.engine().capabilities().cells_per_token, GetParam().kind != MemoryKind::recurrent);
}

TEST_P(EngineConformance, AStepMovesThePositionAndSamplesOnlyWhereAsked) {
  Bench b = bench();
  const Text first = some_text(1, 5);
  const Text second = some_text(2, 40);  // More than an ubatch.
  const auto sampler = b.greedy();
  std::vector<GroupResult> results;
  ASSERT_EQ(b.step({b.rows(Seat(2), first), b.rows(Seat(0), second, sampler.get())}, results),
            StepOutcome::done);
  EXPECT_EQ(results[0].computed, Tokens(5));
  EXPECT_FALSE(results[0].sampled.has_value());
  EXPECT_EQ(results[1].computed, Tokens(40));
  ASSERT_TRUE(results[1].sampled.has_value());
  EXPECT_GE(raw(results[1].sampled->token), 0);
  EXPECT_LT(raw(results[1].sampled->token), b.vocabulary().size());
  EXPECT_EQ(b.engine().position(Seat(2)), Tokens(5));
  EXPECT_EQ(b.engine().position(Seat(0)), Tokens(40));
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(0));
}

TEST_P(EngineConformance, OldResultsAreOverwritten) {
  Bench b = bench();
  const Text text = some_text(1, 3);
  GroupResult result;
  result.computed = Tokens(77);
  result.sampled = Sampled{};
  result.sampler_failed = true;
  const RowGroup group = b.rows(Seat(0), text);
  ASSERT_EQ(b.engine().step({&group, 1}, {&result, 1}), StepOutcome::done);
  EXPECT_EQ(result.computed, Tokens(3));
  EXPECT_FALSE(result.sampled.has_value());
  EXPECT_FALSE(result.sampler_failed);
}

TEST_P(EngineConformance, GreedyRepliesAreTheSameOnEverySeatAndEngine) {
  Bench a = bench();
  Bench b = bench();
  const Text prompt = some_text(3, 30);
  const auto on_first = a.complete(Seat(0), prompt, reply);
  a.engine().clear(Seat(0));
  EXPECT_TRUE(same(on_first, a.complete(Seat(3), prompt, reply)));
  EXPECT_TRUE(same(on_first, b.complete(Seat(1), prompt, reply)));
}

TEST_P(EngineConformance, EveryEarlierTokenMatters) {
  Bench b = bench();
  const Text prompt = some_text(4, 20);
  const auto reference = b.complete(Seat(0), prompt, reply);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    Text other = prompt;
    other[i] = TokenId{raw(other[i]) == 40 ? 41 : 40};
    b.engine().clear(Seat(0));
    EXPECT_FALSE(same(reference, b.complete(Seat(0), other, reply))) << "token " << i;
  }
}

TEST_P(EngineConformance, AnotherModelSaysSomethingElse) {
  Bench a = bench();
  Bench b = bench(1024, 4, 2);
  const Text prompt = some_text(5, 20);
  EXPECT_FALSE(same(a.complete(Seat(0), prompt, reply), b.complete(Seat(0), prompt, reply)));
}

TEST_P(EngineConformance, APromptInChunksIsThePrompt) {
  Bench b = bench();
  const Text prompt = some_text(6, 45);
  const auto whole = b.complete(Seat(0), prompt, reply);
  for (const std::int64_t chunk : {1, 7, 16, 17}) {
    b.engine().clear(Seat(0));
    const auto chunked = b.follow(Seat(0), b.feed(Seat(0), prompt, chunk), reply);
    EXPECT_TRUE(alike(whole, chunked, GetParam().shape_tolerance)) << "chunks of " << chunk;
  }
}

TEST_P(EngineConformance, SequencesInOneStepDoNotTouchEachOther) {
  Bench b = bench();
  std::vector<Text> prompts;
  std::vector<std::vector<Sampled>> alone;
  for (int i = 0; i < 4; ++i) {
    prompts.push_back(some_text(10 + static_cast<std::uint64_t>(i), 9 + i));
    alone.push_back(b.complete(Seat(i), prompts.back(), reply));
    b.engine().clear(Seat(i));
  }
  std::vector<std::vector<Sampled>> together(4);
  std::vector<std::unique_ptr<Sampler>> samplers;
  for (int i = 0; i < 4; ++i) samplers.push_back(b.greedy());
  std::vector<Text> next = prompts;
  for (int round = 0; round < reply; ++round) {
    std::vector<RowGroup> groups;
    for (int i = 3; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      groups.push_back(b.rows(Seat(i), next[at], samplers[at].get()));
    }
    std::vector<GroupResult> results;
    ASSERT_EQ(b.step(groups, results), StepOutcome::done);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto at = static_cast<std::size_t>(groups[g].seat.value);
      ASSERT_TRUE(results[g].sampled.has_value());
      together[at].push_back(*results[g].sampled);
      next[at] = {results[g].sampled->token};
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(alike(alone[i], together[i], GetParam().shape_tolerance)) << "sequence " << i;
  }
}

TEST_P(EngineConformance, TruncatedAndComputedAgainItContinuesTheSame) {
  Bench b = bench();
  const Text prompt = some_text(7, 30);
  const auto before = b.complete(Seat(0), prompt, reply);
  const Tokens held = b.engine().position(Seat(0));
  const Tokens keep(20);
  if (b.engine().truncatable(Seat(0), keep) != keep) {
    EXPECT_EQ(b.engine().truncate(Seat(0), keep), EditOutcome::unsupported);
    EXPECT_EQ(b.engine().position(Seat(0)), held) << "unsupported changes nothing";
    b.complete(Seat(1), prompt, reply);
    EXPECT_TRUE(alike(b.follow(Seat(1), before.back(), reply),
                      b.follow(Seat(0), before.back(), reply), GetParam().shape_tolerance));
    return;
  }
  ASSERT_EQ(b.engine().truncate(Seat(0), keep), EditOutcome::done);
  EXPECT_EQ(b.engine().position(Seat(0)), keep);
  const Text rest(prompt.begin() + keep.value, prompt.end());
  EXPECT_TRUE(alike(before, b.complete(Seat(0), rest, reply), GetParam().shape_tolerance));
}

TEST_P(EngineConformance, TruncatableIsWhatTruncateCanDo) {
  Bench b = bench();
  b.feed(Seat(0), some_text(8, 50));
  EXPECT_EQ(b.engine().truncatable(Seat(0), Tokens(50)), Tokens(50));
  EXPECT_EQ(b.engine().truncatable(Seat(0), Tokens(60)), Tokens(50)) << "never above the position";
  for (const std::int64_t want : {49, 25, 1, 0}) {
    const Tokens can = b.engine().truncatable(Seat(0), Tokens(want));
    EXPECT_LE(can, Tokens(want));
    ASSERT_EQ(b.engine().truncate(Seat(0), can), EditOutcome::done);
    EXPECT_EQ(b.engine().position(Seat(0)), can);
    if (can == Tokens(0)) break;
  }
}

TEST_P(EngineConformance, ASharedPrefixEqualsOwnCompute) {
  Bench b = bench();
  const Text prompt = some_text(9, 40);
  const Text tail = some_text(10, 6);
  b.feed(Seat(0), prompt);
  const Tokens n(25);
  if (!b.engine().capabilities().share_prefix) {
    EXPECT_EQ(b.engine().share_prefix(Seat(0), Seat(1), n), EditOutcome::unsupported);
    EXPECT_EQ(b.engine().position(Seat(1)), Tokens(0));
    EXPECT_EQ(b.engine().position(Seat(0)), Tokens(40));
    return;
  }
  ASSERT_EQ(b.engine().share_prefix(Seat(0), Seat(1), n), EditOutcome::done);
  EXPECT_EQ(b.engine().position(Seat(1)), n);
  EXPECT_EQ(b.engine().position(Seat(0)), Tokens(40));
  const auto shared = b.complete(Seat(1), tail, reply);
  b.feed(Seat(2), Text(prompt.begin(), prompt.begin() + n.value));
  EXPECT_TRUE(alike(b.complete(Seat(2), tail, reply), shared, GetParam().shape_tolerance));
  // The cells outlive their first owner, and the first owner is as before.
  b.engine().clear(Seat(1));
  const auto first = b.complete(Seat(0), tail, reply);
  b.feed(Seat(3), prompt);
  EXPECT_TRUE(alike(b.complete(Seat(3), tail, reply), first, GetParam().shape_tolerance));
}

TEST_P(EngineConformance, AnOwnerMayLeaveSharedCellsFirst) {
  Bench b = bench();
  if (!b.engine().capabilities().share_prefix) return;  // LimitsHoldWhatWasAskedFor says where.
  const Text prompt = some_text(11, 30);
  const Text tail = some_text(12, 5);
  b.feed(Seat(0), prompt);
  ASSERT_EQ(b.engine().share_prefix(Seat(0), Seat(1), Tokens(30)), EditOutcome::done);
  b.engine().clear(Seat(0));
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(30));
  b.feed(Seat(2), some_text(13, 60));  // Would land in cells that were freed too early.
  const auto left = b.complete(Seat(1), tail, reply);
  b.feed(Seat(0), prompt);
  EXPECT_TRUE(alike(b.complete(Seat(0), tail, reply), left, GetParam().shape_tolerance));
}

TEST_P(EngineConformance, AClearedSeatStartsAnew) {
  Bench b = bench();
  const Text prompt = some_text(14, 25);
  const auto first = b.complete(Seat(1), prompt, reply);
  b.engine().clear(Seat(1));
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(0));
  b.engine().clear(Seat(1));  // Twice is no harm.
  EXPECT_TRUE(same(first, b.complete(Seat(1), prompt, reply)));
  ASSERT_EQ(b.engine().truncate(Seat(1), Tokens(0)), EditOutcome::done) << "as clear does";
  EXPECT_TRUE(same(first, b.complete(Seat(1), prompt, reply)));
}

TEST_P(EngineConformance, ADeadEndOfASamplerIsItsOwnTrouble) {
  Bench b = bench();
  SamplingParams params;
  params.temperature = 0.0F;
  params.grammar = GetParam().dead_end_grammar;
  params.grammar_origin = GrammarOrigin::client;
  auto dead = b.vocabulary().make_sampler(params, {});
  ASSERT_TRUE(dead.ok()) << dead.error().message;
  const auto good = b.greedy();
  const Text text = some_text(15, 6);
  std::vector<GroupResult> results;
  ASSERT_EQ(
      b.step({b.rows(Seat(0), text, dead->get()), b.rows(Seat(1), text, good.get())}, results),
      StepOutcome::done);
  EXPECT_TRUE(results[0].sampler_failed);
  EXPECT_FALSE(results[0].sampled.has_value());
  EXPECT_EQ(results[0].computed, Tokens(6));
  EXPECT_FALSE(results[1].sampler_failed);
  ASSERT_TRUE(results[1].sampled.has_value());
  // The cells are good, and the sampler stays dead without harm.
  EXPECT_TRUE(alike(b.follow(Seat(1), *results[1].sampled, reply),
                    b.follow(Seat(0), *results[1].sampled, reply), GetParam().shape_tolerance));
  ASSERT_EQ(b.step({b.rows(Seat(0), text, dead->get())}, results), StepOutcome::done);
  EXPECT_TRUE(results[0].sampler_failed);
}

TEST_P(EngineConformance, ASecondEngineIsBuiltWhileTheFirstSteps) {
  Bench first = bench();
  const Text prompt = some_text(16, 30);
  const auto expected = first.complete(Seat(0), prompt, reply);
  std::atomic<bool> built{false};
  std::vector<Sampled> from_second;
  std::thread builder([&] {
    Bench second = bench(2048, 2);
    built.store(true);
    from_second = second.complete(Seat(0), prompt, reply);
  });
  do {
    first.engine().clear(Seat(0));
    EXPECT_TRUE(same(expected, first.complete(Seat(0), prompt, reply)));
  } while (!built.load());
  builder.join();
  EXPECT_TRUE(alike(expected, from_second, GetParam().shape_tolerance));
}

}  // namespace
}  // namespace fermata::engine
