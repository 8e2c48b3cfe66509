// Sequences leave the pool as images and come back; mirrors make the way out short.
#include "engine/fake/fake_engine.h"
#include "kv/pool.h"
#include "unit/kv/computing.h"

#include <array>
#include <numeric>

#include <gtest/gtest.h>

namespace fermata::kv {
namespace {

constexpr Tokens block{8};

class Images : public ::testing::Test {
 protected:
  explicit Images(std::optional<Bytes> budget = std::nullopt)
      : pool_(engine_, {.budgets = {.preempt = budget}, .block = block}) {}

  // Seats a sequence that holds the tokens first, first + 1, ...
  void seat(std::int32_t number, std::int32_t first, std::size_t count) {
    ASSERT_EQ(pool_.take(Seat(number), Tokens(0)), Tokens(0));
    append(number, first, count);
  }
  void append(std::int32_t number, std::int32_t first, std::size_t count) {
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < count; ++i) {
      tokens.push_back(TokenId{first + static_cast<std::int32_t>(i)});
    }
    compute(engine_, pool_, Seat(number), tokens);
  }

  engine::fake::FakeEngine engine_{
      {}, {.n_ctx = Tokens(128), .n_parallel = 3}, {.n_batch = Tokens(64), .n_ubatch = Tokens(64)}};
  Pool pool_;
};

TEST_F(Images, HoldExactlyWhatTheSeatHeld) {
  seat(0, 50, 3);
  const auto stamps = engine_.shape_stamps(Seat(0));
  Image bare = pool_.image(Seat(0), false);
  EXPECT_EQ(bare.tokens.size(), 3U);
  EXPECT_EQ(bare.size(), Bytes(0));
  Image image = pool_.image(Seat(0), true);
  EXPECT_EQ(image.size(), engine_.range_bytes(Tokens(3)));
  EXPECT_EQ(pool_.vault().parked(), image.size());
  pool_.release(Seat(0), false, Micros(1));
  EXPECT_EQ(pool_.ledger().used(), Tokens(0));

  ASSERT_EQ(pool_.take(Seat(1), Tokens(0)), Tokens(0));
  EXPECT_EQ(pool_.restore(Seat(1), std::move(bare)), Tokens(0));
  EXPECT_EQ(pool_.restore(Seat(1), std::move(image)), Tokens(3));
  EXPECT_EQ(engine_.shape_stamps(Seat(1)), stamps);
  EXPECT_EQ(pool_.vault().parked(), Bytes(0));
}

TEST_F(Images, AParkOfAMirroredSequenceCopiesOnlyItsTail) {
  seat(0, 50, 20);
  ASSERT_TRUE(pool_.mirror_next(Seat(0)));
  ASSERT_TRUE(pool_.mirror_next(Seat(0)));
  EXPECT_EQ(pool_.mirrored(Seat(0)), Tokens(16));
  EXPECT_EQ(pool_.vault().mirrored(), engine_.range_bytes(Tokens(16)));
  append(0, 90, 2);
  const Tokens before = engine_.exported();
  Image image = pool_.image(Seat(0), true);
  EXPECT_EQ(engine_.exported() - before, Tokens(6));
  EXPECT_EQ(pool_.vault().mirrored(), Bytes(0));
  EXPECT_EQ(pool_.vault().parked(), engine_.range_bytes(Tokens(22)));
  const auto stamps = engine_.shape_stamps(Seat(0));
  pool_.release(Seat(0), false, Micros(1));

  ASSERT_EQ(pool_.take(Seat(2), Tokens(0)), Tokens(0));
  ASSERT_EQ(pool_.restore(Seat(2), std::move(image)), Tokens(22));
  EXPECT_EQ(engine_.shape_stamps(Seat(2)), stamps);
  // What is left is a mirror again, without the short tail.
  EXPECT_EQ(pool_.mirrored(Seat(2)), Tokens(16));
  EXPECT_EQ(pool_.vault().mirrored(), engine_.range_bytes(Tokens(16)));
  pool_.release(Seat(2), true, Micros(2));
  EXPECT_EQ(pool_.vault().mirrored(), Bytes(0)) << "an idle seat keeps cells, no copies";
}

TEST_F(Images, AnUnmirroredParkMirrorsTheWholeWhenItIsBack) {
  seat(0, 50, 20);
  Image image = pool_.image(Seat(0), true);
  pool_.release(Seat(0), false, Micros(1));
  ASSERT_EQ(pool_.take(Seat(0), Tokens(0)), Tokens(0));
  ASSERT_EQ(pool_.restore(Seat(0), std::move(image)), Tokens(20));
  EXPECT_EQ(pool_.mirrored(Seat(0)), Tokens(20));
  append(0, 90, 10);
  ASSERT_TRUE(pool_.mirror_next(Seat(0)));
  EXPECT_EQ(pool_.mirrored(Seat(0)), Tokens(24)) << "blocks end at multiples of their size";
}

TEST_F(Images, SequencesThatShareCellsShareTheirCopies) {
  seat(0, 50, 16);
  ASSERT_EQ(pool_.take_shared(Seat(1), Seat(0), Tokens(8)), Tokens(8));
  append(1, 90, 8);
  for (const int number : {0, 1}) {
    ASSERT_TRUE(pool_.mirror_next(Seat(number)));
    ASSERT_TRUE(pool_.mirror_next(Seat(number)));
  }
  EXPECT_EQ(pool_.vault().mirrored(), engine_.range_bytes(Tokens(24)));
}

// Three of 20 tokens each: seats 1 and 2 share the first 12 of seat 0.
class SharedImages : public Images {
 protected:
  void SetUp() override {
    seat(0, 50, 20);
    for (const int number : {1, 2}) {
      ASSERT_EQ(pool_.take_shared(Seat(number), Seat(0), Tokens(12)), Tokens(12));
      append(number, 90 + 10 * number, 8);
      stamps_.push_back(engine_.shape_stamps(Seat(number)));
    }
  }
  std::vector<Image> leave() {
    const std::array seats = {Seat(0), Seat(1), Seat(2)};
    std::vector<Image> out;
    pool_.images(seats, true, out);
    for (const Seat seat : seats) pool_.release(seat, false, Micros(1));
    EXPECT_EQ(pool_.ledger().used(), Tokens(0));
    return out;
  }
  Tokens come_back(std::int32_t number, Image image) {
    EXPECT_EQ(pool_.take(Seat(number), Tokens(0)), Tokens(0));
    return pool_.restore(Seat(number), std::move(image));
  }

  std::vector<std::vector<std::int32_t>> stamps_;
};

TEST_F(SharedImages, AreStoredOnceAndComeBackInTheSameCells) {
  std::vector<Image> images = leave();
  EXPECT_EQ(pool_.vault().parked(), engine_.range_bytes(Tokens(36)));
  EXPECT_EQ(shared(images[0], images[1]), Tokens(12));
  for (const int number : {0, 1, 2}) {
    const auto at = static_cast<std::size_t>(number);
    EXPECT_EQ(come_back(number, std::move(images[at])), Tokens(20));
  }
  EXPECT_EQ(pool_.ledger().used(), Tokens(36));
  EXPECT_EQ(engine_.cells_used(), Tokens(36));
  EXPECT_EQ(pool_.ledger().shared(Seat(0), Seat(2)), Tokens(12));
  EXPECT_EQ(engine_.shape_stamps(Seat(1)), stamps_[0]);
  EXPECT_EQ(engine_.shape_stamps(Seat(2)), stamps_[1]);
  images = leave();
  EXPECT_EQ(pool_.vault().parked(), engine_.range_bytes(Tokens(36))) << "a second time as well";
  EXPECT_EQ(shared(images[0], images[2]), Tokens(12));
}

TEST_F(SharedImages, AreCompleteWithoutTheFirst) {
  std::vector<Image> images = leave();
  images[0] = {};
  EXPECT_EQ(pool_.vault().parked(), engine_.range_bytes(Tokens(28)));
  EXPECT_EQ(come_back(2, std::move(images[2])), Tokens(20));
  EXPECT_EQ(engine_.shape_stamps(Seat(2)), stamps_[1]);
  EXPECT_EQ(come_back(0, std::move(images[1])), Tokens(20));
  EXPECT_EQ(pool_.ledger().used(), Tokens(28));
}

TEST_F(SharedImages, TakeTheirMirrorsAlong) {
  for (const int number : {0, 1, 2}) ASSERT_TRUE(pool_.mirror_next(Seat(number)));
  std::vector<Image> images = leave();
  EXPECT_EQ(pool_.vault().parked(), engine_.range_bytes(Tokens(36)));
  EXPECT_EQ(shared(images[0], images[2]), Tokens(12));
}

class TightImages : public Images {
 protected:
  TightImages() : Images(Bytes(24 * 20)) {}  // For 20 tokens.
};

TEST_F(TightImages, MirrorsOfOthersMakeRoomForAPark) {
  seat(0, 50, 16);
  seat(1, 90, 16);
  ASSERT_TRUE(pool_.mirror_next(Seat(0)));
  ASSERT_TRUE(pool_.mirror_next(Seat(0)));
  EXPECT_FALSE(pool_.mirror_next(Seat(1))) << "mirrors do not push each other out";
  const Image image = pool_.image(Seat(1), true);
  EXPECT_FALSE(image.pieces.empty());
  EXPECT_EQ(pool_.mirrored(Seat(0)), Tokens(0));
  EXPECT_EQ(pool_.vault().mirrored(), Bytes(0));
  const Image second = pool_.image(Seat(0), true);
  EXPECT_TRUE(second.pieces.empty()) << "parked bytes stay";
  EXPECT_EQ(pool_.vault().parked(), image.size());
}

TEST(SpilledImages, WhatRamHasNoRoomForPassesInWholeBlocks) {
  engine::fake::FakeEngine engine({}, {.n_ctx = Tokens(128), .n_parallel = 3},
                                  {.n_batch = Tokens(64), .n_ubatch = Tokens(64)});
  Pool pool(engine,
            {.budgets = {.preempt = Bytes(24 * 10), .passing = Bytes(24 * 64)}, .block = block});
  ASSERT_EQ(pool.take(Seat(0), Tokens(0)), Tokens(0));
  compute(engine, pool, Seat(0), tokens_of("twenty tokens of text"));
  const auto stamps = engine.shape_stamps(Seat(0));
  Image image = pool.image(Seat(0), true);
  ASSERT_EQ(image.pieces.size(), 3U);
  for (const Piece& piece : image.pieces) EXPECT_EQ(piece.hold(), Hold::passing);
  EXPECT_EQ(image.pieces[2].tokens(), Tokens(5));
  EXPECT_EQ(pool.vault().parked(), Bytes(0)) << "all of it, or nothing";
  EXPECT_EQ(pool.vault().passing(), image.size());
  pool.release(Seat(0), false, Micros(1));

  std::vector<ByteBuffer> away;
  for (const Piece& piece : image.pieces) {
    away.emplace_back(piece.bytes().begin(), piece.bytes().end());
  }
  image.away = image.size();
  image.pieces.clear();
  EXPECT_TRUE(image.is_away() && image.has_bytes());
  EXPECT_EQ(image.size(), image.away);
  EXPECT_EQ(pool.vault().passing() + pool.vault().parked(), Bytes(0));

  image.pieces = pool.pieces_of(away, Tokens(21));
  ASSERT_EQ(image.pieces.size(), 3U);
  EXPECT_FALSE(image.is_away());
  ASSERT_EQ(pool.take(Seat(1), Tokens(0)), Tokens(0));
  EXPECT_EQ(pool.restore(Seat(1), std::move(image)), Tokens(21));
  EXPECT_EQ(engine.shape_stamps(Seat(1)), stamps);
  EXPECT_EQ(pool.vault().passing(), Bytes(0));
}

}  // namespace
}  // namespace fermata::kv
