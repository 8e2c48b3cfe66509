// The contract of engine/engine.h where a context is shifted.
#include "conformance/engine_conformance.h"

namespace fermata::engine {
namespace {

constexpr int reply = 8;

TEST_P(EngineConformance, OnlyPlainAttentionShifts) {
  Bench b = bench();
  EXPECT_EQ(b.engine().capabilities().shift, GetParam().kind == MemoryKind::attention);
  if (b.engine().capabilities().shift) return;
  const Text prompt = some_text(60, 30);
  const auto alone = b.complete(Seat(0), prompt, reply);
  b.engine().clear(Seat(0));
  const Sampled first = b.feed(Seat(0), prompt);
  EXPECT_EQ(b.engine().shift(Seat(0), Tokens(2), Tokens(9)), ShiftOutcome::unsupported);
  EXPECT_EQ(b.engine().position(Seat(0)), Tokens(30));
  EXPECT_TRUE(same(alone, b.follow(Seat(0), first, reply)));
}

// The bytes are exact; the cells of what comes back lie in another order than those around a gap,
// and sums over them end in other last bits.
TEST_P(EngineConformance, WhatWasShiftedLeavesAndComesBack) {
  Bench b = bench(1024, 2);
  if (!b.engine().capabilities().shift) return;
  const auto said = b.complete(Seat(0), some_text(61, 60), reply);
  const Tokens end = b.engine().position(Seat(0));
  ASSERT_EQ(b.engine().shift(Seat(0), Tokens(4), Tokens(21)), ShiftOutcome::done);
  EXPECT_EQ(b.engine().position(Seat(0)), end - Tokens(21));
  ByteBuffer bytes;
  ASSERT_TRUE(b.engine().export_sequence(Seat(0), bytes).ok());
  const auto stayed = b.follow(Seat(0), said.back(), reply);
  b.engine().clear(Seat(0));
  ASSERT_TRUE(b.engine().import_sequence(Seat(1), bytes).ok());
  EXPECT_TRUE(alike(stayed, b.follow(Seat(1), said.back(), reply), GetParam().shape_tolerance));
}

// Another server saved old keys at new positions when it copied right after a shift.
TEST_P(EngineConformance, BytesAreTheSameRightAfterAShiftAndLater) {
  Bench b = bench(1024, 2);
  if (!b.engine().capabilities().shift || !b.engine().capabilities().move_ranges) return;
  const auto said = b.complete(Seat(0), some_text(62, 60), reply);
  ByteBuffer before, at_once, later, moved;
  ASSERT_TRUE(b.engine().export_range(Seat(0), Tokens(30), Tokens(50), before).ok());
  ASSERT_EQ(b.engine().shift(Seat(0), Tokens(0), Tokens(30)), ShiftOutcome::done);
  ASSERT_TRUE(b.engine().export_range(Seat(0), Tokens(0), Tokens(20), at_once).ok());
  EXPECT_NE(at_once, before) << "nothing was turned";
  const auto stayed = b.follow(Seat(0), said.back(), reply);
  ASSERT_TRUE(b.engine().export_range(Seat(0), Tokens(0), Tokens(20), later).ok());
  EXPECT_EQ(later, at_once);
  Bench to = bench(512, 1);
  ASSERT_TRUE(to.engine().import_range(Seat(0), at_once).ok());
  ASSERT_TRUE(to.engine().export_range(Seat(0), Tokens(0), Tokens(20), moved).ok());
  EXPECT_EQ(moved, at_once) << "what came in goes out again";
}

TEST_P(EngineConformance, AShiftLeavesNeighboursAndTheSharedBeginningAlone) {
  Bench b = bench(1024, 2);
  if (!b.engine().capabilities().shift) return;
  const Text prompt = some_text(63, 40), other = some_text(64, 40);
  const auto alone = b.complete(Seat(1), other, reply);
  b.engine().clear(Seat(1));
  b.complete(Seat(0), prompt, reply);
  const Sampled first = b.feed(Seat(1), other);
  ASSERT_EQ(b.engine().shift(Seat(0), Tokens(4), Tokens(21)), ShiftOutcome::done);
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(40));
  EXPECT_TRUE(alike(alone, b.follow(Seat(1), first, reply), GetParam().shape_tolerance));
  if (!b.engine().capabilities().share_prefix) return;
  // Cells in front of the gap may belong to others.
  b.engine().clear(Seat(1));
  ASSERT_EQ(b.engine().share_prefix(Seat(0), Seat(1), Tokens(4)), EditOutcome::done);
  ASSERT_EQ(b.engine().shift(Seat(0), Tokens(4), Tokens(3)), ShiftOutcome::done);
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(4));
  b.engine().clear(Seat(0));
  b.feed(Seat(1), Text(other.begin(), other.begin() + 4));
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(8));
}

TEST_P(EngineConformance, AFullEngineShifts) {
  Bench b = bench(256, 1);
  if (!b.engine().capabilities().shift) return;
  const std::int64_t window = b.engine().limits().window.value;
  const Sampled first = b.feed(Seat(0), some_text(65, window));
  for (const std::int64_t keep : {std::int64_t{0}, std::int64_t{5}, window - 60}) {
    ASSERT_EQ(b.engine().shift(Seat(0), Tokens(keep), Tokens(20)), ShiftOutcome::done);
    b.follow(Seat(0), first, 11);
    b.feed(Seat(0), some_text(66, window - b.engine().position(Seat(0)).value));
    EXPECT_EQ(b.engine().position(Seat(0)), Tokens(window));
  }
}

}  // namespace
}  // namespace fermata::engine
