// Conversations that had to leave the pool, and who goes on from them.
#include "engine/fake/fake_engine.h"
#include "kv/pool.h"
#include "unit/kv/computing.h"

#include <string>

#include <gtest/gtest.h>

namespace fermata::kv {
namespace {

using engine::MemoryKind;

constexpr Tokens block{8};

struct Rig {
  engine::fake::FakeEngine engine;
  Pool pool;

  explicit Rig(std::optional<Bytes> cache = std::nullopt, MemoryKind kind = MemoryKind::attention,
               Tokens chunk = Tokens(0))
      : engine(model(kind), {.n_ctx = Tokens(128), .n_parallel = 3},
               {.n_batch = Tokens(64), .n_ubatch = Tokens(64)}),
        pool(engine, {.budgets = {.preempt = Bytes(100'000), .cache = cache},
                      .block = block,
                      .chunk = chunk,
                      .cache_min = Tokens(4)}) {}

  static engine::fake::FakeModelSpec model(MemoryKind kind) {
    engine::fake::FakeModelSpec spec;
    spec.kind = kind;
    return spec;
  }
  void compute(Seat seat, const std::string& text) {
    kv::compute(engine, pool, seat, tokens_of(text));
  }
  // A finished conversation on a seat.
  void converse(Seat seat, const std::string& text, Micros now = Micros(1)) {
    ASSERT_EQ(pool.take(seat, Tokens(0)), Tokens(0));
    compute(seat, text);
    pool.release(seat, true, now);
  }
  Offer offer(const std::string& prompt) const { return pool.offer(tokens_of(prompt)); }
  Tokens fetch(Seat seat, const std::string& prompt) {
    return pool.take_shelved(seat, tokens_of(prompt), offer(prompt));
  }
};

TEST(Shelf, GivesBackWhatWasEvictedByteForByte) {
  Rig rig;
  rig.converse(Seat(0), "twelve bytes");
  const auto stamps = rig.engine.shape_stamps(Seat(0));
  rig.pool.evict(Seat(0));
  EXPECT_EQ(rig.pool.ledger().used(), Tokens(0));
  EXPECT_EQ(rig.pool.shelf().size(), 1U);

  EXPECT_EQ(rig.offer("twelve bytes and more").reuse, Tokens(12));
  EXPECT_EQ(rig.fetch(Seat(1), "twelve bytes and more"), Tokens(12));
  EXPECT_EQ(rig.engine.shape_stamps(Seat(1)), stamps);
  EXPECT_EQ(rig.pool.shelf().stats().hits, 1U);
}

TEST(Shelf, LeavesTheLastTokenOfThePromptToBeComputed) {
  Rig rig;
  rig.converse(Seat(0), "twelve bytes");
  rig.pool.evict(Seat(0));
  EXPECT_EQ(rig.offer("twelve bytes").reuse, Tokens(11));
  EXPECT_EQ(rig.fetch(Seat(1), "twelve bytes"), Tokens(11));
  EXPECT_EQ(rig.engine.position(Seat(1)), Tokens(11));
}

TEST(Shelf, CutsInTheMiddleOfABlock) {
  Rig rig;
  rig.converse(Seat(0), "the beginning is the same");
  rig.pool.evict(Seat(0));
  const Offer offer = rig.offer("the beginning is another");
  EXPECT_EQ(offer.reuse, Tokens(17));
  EXPECT_EQ(offer.cells, Tokens(24));
  EXPECT_EQ(rig.fetch(Seat(1), "the beginning is another"), Tokens(17));
}

TEST(Shelf, KeepsWhatATakenSeatLoses) {
  Rig rig;
  rig.converse(Seat(0), "first conversation");
  rig.converse(Seat(0), "another one");  // On the same seat, from nothing.
  EXPECT_EQ(rig.pool.shelf().size(), 1U);
  EXPECT_EQ(rig.offer("first conversation goes on").reuse, Tokens(18));
}

TEST(Shelf, KeepsNothingOfASeatThatGoesOn) {
  Rig rig;
  rig.converse(Seat(0), "a turn and a reply");
  EXPECT_EQ(rig.pool.take(Seat(0), Tokens(17)), Tokens(17));
  EXPECT_EQ(rig.pool.shelf().size(), 0U);
}

TEST(Shelf, ReplacesABeginningByItsContinuation) {
  Rig rig;
  rig.converse(Seat(0), "one, two, three");
  rig.pool.evict(Seat(0));
  rig.converse(Seat(1), "one, two, three, four");
  rig.pool.evict(Seat(1));
  EXPECT_EQ(rig.pool.shelf().size(), 1U);
  EXPECT_EQ(rig.pool.shelf().stats().superseded, 1U);
  rig.converse(Seat(2), "one, two");
  rig.pool.evict(Seat(2));
  EXPECT_EQ(rig.pool.shelf().size(), 1U);
  EXPECT_EQ(rig.offer("one, two, three, four, five").reuse, Tokens(21));
}

TEST(Shelf, FindsTheLongestOfManyThatBeginAlike) {
  Rig rig;
  const std::string system = "you are a helpful assistant. ";
  for (const char* user : {"abc", "abd", "xyz"}) {
    rig.converse(Seat(0), system + user);
    rig.pool.evict(Seat(0));
  }
  EXPECT_EQ(rig.pool.shelf().size(), 3U);
  EXPECT_EQ(rig.offer(system + "abq").reuse, Tokens(31));
  EXPECT_EQ(rig.offer(system + "q").reuse, Tokens(29));
  EXPECT_EQ(rig.offer("nobody said this before").reuse, Tokens(0));
}

TEST(Shelf, NeverHoldsMoreThanItsBudget) {
  Rig probe;
  const Bytes each = probe.engine.range_bytes(Tokens(8));
  Rig rig(each * 3);
  for (const char* text : {"aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"}) {
    rig.converse(Seat(0), text);
    rig.pool.evict(Seat(0));
    EXPECT_LE(rig.pool.vault().cached(), each * 3);
  }
  EXPECT_EQ(rig.pool.shelf().size(), 3U);
  EXPECT_EQ(rig.pool.shelf().stats().evicted, 1U);
  EXPECT_EQ(rig.offer("aaaaaaaaa").reuse, Tokens(0));  // Unused for longest.
  EXPECT_EQ(rig.offer("ddddddddd").reuse, Tokens(8));
}

TEST(Shelf, KeepsTheBeginningOfWhatDoesNotFit) {
  Rig probe;
  Rig rig(probe.engine.range_bytes(Tokens(8)) * 2);
  rig.converse(Seat(0), "this is far more than two blocks");
  rig.pool.evict(Seat(0));
  EXPECT_EQ(rig.offer("this is far more than two blocks").reuse, Tokens(16));
}

TEST(Shelf, OffWithABudgetOfNothing) {
  Rig rig(Bytes(0));
  rig.converse(Seat(0), "twelve bytes");
  EXPECT_EQ(rig.pool.uncopied(Seat(0)), Tokens(0));
  rig.pool.evict(Seat(0));
  EXPECT_EQ(rig.pool.shelf().size(), 0U);
}

TEST(Shelf, CopiesAheadSoThatDroppingIsShort) {
  Rig rig;
  rig.converse(Seat(0), "nineteen tokens ...");
  EXPECT_EQ(rig.pool.uncopied(Seat(0)), Tokens(19));
  EXPECT_TRUE(rig.pool.copy_next(Seat(0)));
  EXPECT_TRUE(rig.pool.copy_next(Seat(0)));
  EXPECT_EQ(rig.pool.uncopied(Seat(0)), Tokens(0));  // The tail grows no block.
  const Tokens before = rig.engine.exported();
  rig.pool.evict(Seat(0));
  EXPECT_EQ(rig.engine.exported() - before, Tokens(3));
  EXPECT_EQ(rig.offer("nineteen tokens ... and on").reuse, Tokens(19));
}

TEST(Shelf, WhatWasFetchedIsMirroredAlready) {
  Rig rig;
  rig.converse(Seat(0), "sixteen tokens..");
  rig.pool.evict(Seat(0));
  ASSERT_EQ(rig.fetch(Seat(0), "sixteen tokens.. more"), Tokens(16));
  EXPECT_EQ(rig.pool.mirrored(Seat(0)), Tokens(16));
  const Tokens before = rig.engine.exported();
  const Image image = rig.pool.image(Seat(0), true);
  EXPECT_EQ(rig.engine.exported(), before);
  EXPECT_EQ(rig.pool.vault().parked(), image.size());
}

TEST(Shelf, UsesARecurrentStateWholeOrNotAtAll) {
  Rig rig(std::nullopt, MemoryKind::recurrent);
  rig.converse(Seat(0), "twelve bytes");
  rig.pool.evict(Seat(0));
  EXPECT_EQ(rig.offer("twelve bites").reuse, Tokens(0));
  EXPECT_EQ(rig.offer("twelve bytes").reuse, Tokens(0));  // Its last token would be missing.
  EXPECT_EQ(rig.fetch(Seat(1), "twelve bytes!"), Tokens(12));
}

TEST(Shelf, WithFixedShapesReusesWholeChunksOfPrompts) {
  Rig rig(std::nullopt, MemoryKind::attention, Tokens(4));
  ASSERT_EQ(rig.pool.take(Seat(0), Tokens(0)), Tokens(0));
  for (const char* chunk : {"four", "four", "fo"}) rig.compute(Seat(0), chunk);
  rig.pool.release(Seat(0), true, Micros(1));
  rig.pool.evict(Seat(0));
  EXPECT_EQ(rig.offer("fourfourfourfour").reuse, Tokens(8));
}

TEST(Shelf, SurvivesAnEngineThatLosesItsCells) {
  Rig rig;
  rig.converse(Seat(0), "twelve bytes");
  rig.pool.evict(Seat(0));
  rig.pool.drop_everything();
  EXPECT_EQ(rig.fetch(Seat(0), "twelve bytes again"), Tokens(12));
}

TEST(Shelf, ACopyOfARunningSequenceLeavesItAsItIs) {
  Rig rig;
  ASSERT_EQ(rig.pool.take(Seat(0), Tokens(0)), Tokens(0));
  rig.compute(Seat(0), "a reply that is being");
  ASSERT_TRUE(rig.pool.mirror_next(Seat(0)));
  const auto stamps = rig.engine.shape_stamps(Seat(0));
  const Image copy = rig.pool.copy_of(Seat(0));
  EXPECT_EQ(copy.tokens, tokens_of("a reply that is being"));
  EXPECT_EQ(copy.pieces.size(), 3U);
  EXPECT_EQ(tokens_of(copy.pieces), Tokens(21));
  EXPECT_EQ(rig.engine.shape_stamps(Seat(0)), stamps);
  EXPECT_EQ(rig.pool.mirrored(Seat(0)), Tokens(8));
  rig.compute(Seat(0), " made");
  EXPECT_EQ(rig.pool.tokens(Seat(0)).size(), 26U);
}

TEST(Shelf, ForgetsOnSeatsAndOffThemAndNothingElse) {
  Rig rig;
  rig.converse(Seat(0), "to be forgotten");
  rig.pool.evict(Seat(0));
  rig.converse(Seat(0), "to be forgotten");
  rig.converse(Seat(1), "to be kept");
  ASSERT_EQ(rig.pool.take(Seat(2), Tokens(0)), Tokens(0));
  rig.compute(Seat(2), "to be forgotten");
  const auto gone = tokens_of("to be forgotten");
  rig.pool.forget([&](std::span<const TokenId> tokens, const Owner&, std::string_view) {
    return std::vector<TokenId>(tokens.begin(), tokens.end()) == gone;
  });
  EXPECT_EQ(rig.pool.shelf().size(), 0U);
  EXPECT_EQ(rig.pool.use(Seat(0)), SeatUse::empty);
  EXPECT_EQ(rig.pool.use(Seat(1)), SeatUse::idle);
  EXPECT_EQ(rig.pool.use(Seat(2)), SeatUse::busy);  // Somebody is at work on it.
}

}  // namespace
}  // namespace fermata::kv
