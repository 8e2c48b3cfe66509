// Cells that move to another engine: whole, once where they are shared, and as they are in the end.
#include "engine/fake/fake_engine.h"
#include "kv/pool.h"
#include "reconfigure/crate.h"
#include "reconfigure/transfer.h"
#include "unit/kv/computing.h"

#include <gtest/gtest.h>

namespace fermata::reconfigure {
namespace {

using engine::fake::FakeEngine;
using kv::compute;
using kv::tokens_of;

constexpr Tokens block{4};
constexpr engine::EngineOptions options{.n_batch = Tokens(64), .n_ubatch = Tokens(64)};

class Moving : public ::testing::Test {
 protected:
  void seat(std::int32_t number, const std::string& text) {
    ASSERT_EQ(pool_.take(Seat(number), Tokens(0)), Tokens(0));
    compute(from_, pool_, Seat(number), tokens_of(text));
  }

  FakeEngine from_{{}, {.n_ctx = Tokens(128), .n_parallel = 3}, options};
  FakeEngine to_{{}, {.n_ctx = Tokens(256), .n_parallel = 5}, options};
  kv::Pool pool_{from_,
                 {.budgets = {.preempt = std::nullopt, .cache = std::nullopt},
                  .block = block,
                  .cache_min = Tokens(1)}};
  FakeClock clock_;
};

TEST_F(Moving, WhatGrowsMeanwhileArrivesWhole) {
  seat(0, "abcdefghij");
  seat(1, "klm");
  Transfer transfer(from_, to_, pool_, {{Seat(0), Seat(2)}, {Seat(1), Seat(0)}}, clock_, block);
  while (!transfer.advance(Micros(1))) {
  }
  compute(from_, pool_, Seat(0), tokens_of("nopqrs"));
  while (!transfer.advance(Micros(1))) {
  }
  compute(from_, pool_, Seat(1), tokens_of("t"));
  const auto adopted = transfer.finish();
  ASSERT_EQ(adopted.size(), 2U);
  EXPECT_EQ(to_.position(Seat(2)), Tokens(16));
  EXPECT_EQ(to_.position(Seat(0)), Tokens(4));
  EXPECT_EQ(to_.cells_used(), Tokens(20));
  EXPECT_GT(transfer.moved(), Bytes(0));
}

TEST_F(Moving, WhatIsSharedIsCopiedOnce) {
  seat(0, "abcdefghijkl");
  ASSERT_EQ(pool_.take_shared(Seat(1), Seat(0), Tokens(8)), Tokens(8));
  compute(from_, pool_, Seat(1), tokens_of("xyz"));
  Transfer transfer(from_, to_, pool_, {{Seat(0), Seat(0)}, {Seat(1), Seat(1)}}, clock_, block);
  while (!transfer.advance(Micros(1))) {
  }
  const auto adopted = transfer.finish();
  ASSERT_EQ(adopted.size(), 2U);
  EXPECT_EQ(to_.cells_used(), Tokens(15)) << "twelve, and three";
  EXPECT_EQ(to_.position(Seat(1)), Tokens(11));
}

TEST_F(Moving, WhoseSeatIsEmptiedMeanwhileStartsOver) {
  seat(0, "abcdefghij");
  Transfer transfer(from_, to_, pool_, {{Seat(0), Seat(0)}}, clock_, block);
  (void)transfer.advance(Micros(1));
  pool_.release(Seat(0), false, Micros(1));
  seat(0, "zzz");
  const auto adopted = transfer.finish();
  ASSERT_EQ(adopted.size(), 1U);
  EXPECT_EQ(to_.position(Seat(0)), Tokens(3));
  EXPECT_EQ(to_.cells_used(), Tokens(3));
}

TEST_F(Moving, WhatCannotBeCopiedIsLeftOutAndLeavesNothing) {
  seat(0, "abcdefghij");
  from_.set_faults({.move_percent = 100});
  Transfer transfer(from_, to_, pool_, {{Seat(0), Seat(0)}}, clock_, block);
  while (!transfer.advance(Micros(1))) {
  }
  EXPECT_TRUE(transfer.finish().empty());
  EXPECT_EQ(to_.cells_used(), Tokens(0));
}

TEST_F(Moving, WhoFailedIsNotBegunAgain) {
  // A change ended the process: whose copy had failed was given shared cells once more, and had no
  // seat.
  seat(0, "abcdefghijkl");
  ASSERT_EQ(pool_.take_shared(Seat(1), Seat(0), Tokens(8)), Tokens(8));
  compute(from_, pool_, Seat(1), tokens_of("wxyz"));
  for (const std::int32_t s : {0, 1}) pool_.release(Seat(s), true, Micros(1));
  Transfer transfer(from_, to_, pool_, {{Seat(0), Seat(0)}, {Seat(1), Seat(1)}}, clock_, block);
  for (int piece = 0; piece < 3; ++piece) ASSERT_FALSE(transfer.advance(Micros(0)));
  ASSERT_EQ(to_.position(Seat(0)), Tokens(12));
  from_.set_faults({.move_percent = 100});
  for (int round = 0; round < 2; ++round) EXPECT_TRUE(transfer.advance(Micros(1)));
  EXPECT_EQ(transfer.finish().size(), 1U);
  EXPECT_EQ(to_.cells_used(), Tokens(12));
  EXPECT_EQ(to_.position(Seat(1)), Tokens(0));
}

TEST_F(Moving, ACrateCanBeUnpackedTwice) {
  seat(0, "abcdefghijkl");
  ASSERT_EQ(pool_.take_shared(Seat(1), Seat(0), Tokens(8)), Tokens(8));
  compute(from_, pool_, Seat(1), tokens_of("xyz"));
  Crate crate(from_, pool_, {{Seat(0), Seat(0)}, {Seat(1), Seat(1)}}, block);
  EXPECT_GT(crate.bytes(), Bytes(0));
  FakeEngine other({}, {.n_ctx = Tokens(128), .n_parallel = 3}, options);
  for (FakeEngine* into : {&to_, &other}) {
    const auto adopted = crate.unpack(*into, {{Seat(0), Seat(2)}, {Seat(1), Seat(0)}});
    ASSERT_EQ(adopted.size(), 2U);
    EXPECT_EQ(into->position(Seat(2)), Tokens(12));
    EXPECT_EQ(into->position(Seat(0)), Tokens(11));
    EXPECT_EQ(into->cells_used(), Tokens(15));
  }
}

}  // namespace
}  // namespace fermata::reconfigure
