// A context shift moves cells: what the pool says of them stays true, and nobody else is touched.
#include "engine/absent.h"
#include "engine/fake/fake_engine.h"
#include "engine/relay.h"
#include "kv/pool.h"
#include "unit/kv/computing.h"

#include <gtest/gtest.h>

namespace fermata::kv {
namespace {

constexpr Tokens block{8};
constexpr std::int32_t shifted = engine::fake::FakeEngine::shifted_shape;

class Shifting : public ::testing::Test {
 protected:
  void seat(std::int32_t number, const std::string& text) {
    ASSERT_EQ(pool_.take(Seat(number), Tokens(0)), Tokens(0));
    compute(engine_, pool_, Seat(number), tokens_of(text));
  }
  std::string text(std::int32_t number) const {
    std::string out;
    for (const TokenId token : pool_.tokens(Seat(number))) out += static_cast<char>(raw(token));
    return out;
  }
  void check_cells() const { EXPECT_EQ(pool_.ledger().used(), engine_.cells_used()); }
  Tokens shareable(std::int32_t number, const std::string& prompt) const {
    return pool_.match(Seat(number), tokens_of(prompt)).shareable;
  }

  engine::fake::FakeEngine engine_{
      {}, {.n_ctx = Tokens(64), .n_parallel = 3}, {.n_batch = Tokens(64), .n_ubatch = Tokens(64)}};
  Pool pool_{engine_,
             {.budgets = {.preempt = std::nullopt, .cache = std::nullopt},
              .block = block,
              .cache_min = Tokens(1)}};
};

TEST_F(Shifting, WhatMovedServesNobodyElse) {
  seat(0, "abcdefghijklmnopqrstuvwxyz");
  ASSERT_TRUE(pool_.mirror_next(Seat(0)));
  ASSERT_TRUE(pool_.mirror_next(Seat(0)));
  ASSERT_EQ(pool_.shift(Seat(0), Tokens(10), Tokens(4)), Shifted::done);
  EXPECT_EQ(text(0), "abcdefghijopqrstuvwxyz");
  EXPECT_EQ(pool_.mirrored(Seat(0)), Tokens(8)) << "copies of what moved are of no use";
  EXPECT_EQ(engine_.shape_stamps(Seat(0))[9], 26);
  EXPECT_EQ(engine_.shape_stamps(Seat(0))[10], 26 + shifted);
  check_cells();
  EXPECT_EQ(shareable(0, "abcdefghijopqrstuvwxyz!"), Tokens(10));

  pool_.release(Seat(0), true, Micros(1));
  EXPECT_EQ(text(0), "abcdefghij");
  EXPECT_EQ(pool_.match(Seat(0), tokens_of("abcdefghijopq")).own, Tokens(10));
  pool_.evict(Seat(0));
  EXPECT_EQ(pool_.offer(tokens_of("abcdefghijopqrstuvwxyz")).cells, Tokens(10));
  check_cells();
}

TEST_F(Shifting, WhatIsParkedWithoutAnEngineEndsNobody) {
  // The process ended when a context could not be replaced while a shifted reply ran.
  engine::Relay relay(engine_);
  Pool pool(relay, {.budgets = {}, .block = block, .cache_min = Tokens(1)});
  ASSERT_EQ(pool.take(Seat(0), Tokens(0)), Tokens(0));
  compute(relay, pool, Seat(0), tokens_of("abcdefghijklmnop"));
  ASSERT_EQ(pool.shift(Seat(0), Tokens(4), Tokens(4)), Shifted::done);
  engine::AbsentEngine absent(engine_);
  relay.point_to(absent);
  EXPECT_TRUE(pool.image(Seat(0), true).pieces.empty());
  pool.release(Seat(0), false, Micros(1));
  EXPECT_EQ(pool.use(Seat(0)), SeatUse::empty);
}

TEST_F(Shifting, NothingIsLeftOfASequenceThatKeptNothing) {
  seat(0, "abcdefghijkl");
  ASSERT_EQ(pool_.shift(Seat(0), Tokens(0), Tokens(6)), Shifted::done);
  EXPECT_EQ(shareable(0, "ghijkl!"), Tokens(0));
  pool_.release(Seat(0), true, Micros(1));
  EXPECT_EQ(pool_.use(Seat(0)), SeatUse::empty);
  check_cells();
}

TEST_F(Shifting, CellsOfOthersStayWhereTheyAre) {
  seat(0, "abcdefghijklmnop");
  EXPECT_EQ(pool_.take_shared(Seat(1), Seat(0), Tokens(12)), Tokens(12));
  compute(engine_, pool_, Seat(1), tokens_of("QRST"));
  const auto before = engine_.shape_stamps(Seat(0));
  EXPECT_EQ(pool_.ledger().used(), Tokens(20));
  ASSERT_EQ(pool_.shift(Seat(1), Tokens(2), Tokens(5)), Shifted::done);
  EXPECT_EQ(text(1), "abhijklQRST");
  EXPECT_EQ(engine_.shape_stamps(Seat(0)), before);
  EXPECT_EQ(pool_.ledger().shared(Seat(0), Seat(1)), Tokens(2));
  EXPECT_EQ(pool_.ledger().used(), Tokens(16 + 9));
  check_cells();
  // The other way round: its owner shifts, and who shares does not.
  const auto shared = engine_.shape_stamps(Seat(1));
  ASSERT_EQ(pool_.shift(Seat(0), Tokens(1), Tokens(3)), Shifted::done);
  EXPECT_EQ(engine_.shape_stamps(Seat(1)), shared);
  check_cells();
}

TEST_F(Shifting, WithoutRoomForACopyTheRestIsComputedAgain) {
  seat(0, std::string(40, 'a'));
  EXPECT_EQ(pool_.take_shared(Seat(1), Seat(0), Tokens(30)), Tokens(30));
  compute(engine_, pool_, Seat(1), tokens_of(std::string(20, 'b')));
  ASSERT_EQ(pool_.shift(Seat(1), Tokens(3), Tokens(5)), Shifted::to_compute);
  EXPECT_EQ(text(1), "aaa");
  EXPECT_EQ(engine_.position(Seat(0)), Tokens(40));
  check_cells();
  compute(engine_, pool_, Seat(1), tokens_of("bbbb"));
  EXPECT_EQ(shareable(1, "aaabbbb!"), Tokens(7)) << "nothing of it was moved";
}

TEST_F(Shifting, AnImageRemembersWhatMoved) {
  seat(0, "abcdefghijklmnop");
  ASSERT_EQ(pool_.shift(Seat(0), Tokens(4), Tokens(4)), Shifted::done);
  const auto stamps = engine_.shape_stamps(Seat(0));
  Image image = pool_.image(Seat(0), true);
  pool_.release(Seat(0), false, Micros(1));
  ASSERT_EQ(pool_.take(Seat(2), Tokens(0)), Tokens(0));
  ASSERT_EQ(pool_.restore(Seat(2), std::move(image)), Tokens(12));
  EXPECT_EQ(engine_.shape_stamps(Seat(2)), stamps);
  EXPECT_EQ(shareable(2, "abcdijklmnop!"), Tokens(4));
  ASSERT_EQ(pool_.shift(Seat(2), Tokens(6), Tokens(2)), Shifted::done);
  EXPECT_EQ(shareable(2, "abcdijmnop!"), Tokens(4)) << "a second shift makes nothing better";
  check_cells();
}

}  // namespace
}  // namespace fermata::kv
