// What is decided about a change of the geometry, before anything is built.
#include "reconfigure/change.h"

#include <array>

#include <gtest/gtest.h>

namespace fermata::reconfigure {
namespace {

constexpr Bytes mib{std::int64_t{1} << 20};

class Deciding : public ::testing::Test {
 protected:
  Deciding() {
    now_.now.n_ctx = Tokens(1024);
    now_.now.n_parallel = 4;
    now_.cost = {.needed = mib * 100, .freed = mib * 50, .available = mib * 1000};
  }
  RefusalKind refused() {
    const auto plan = decide(change_, now_);
    EXPECT_FALSE(plan.ok());
    return plan ? RefusalKind::nonsense : plan.error().kind;
  }

  Change change_;
  Situation now_;
};

TEST_F(Deciding, BesideWhereMemoryAllows) {
  change_.n_ctx = Tokens(2048);
  auto plan = decide(change_, now_);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->path, Path::beside);
  EXPECT_TRUE(plan->keeps_cells);
  EXPECT_EQ(plan->to.n_ctx, Tokens(2048));
  EXPECT_EQ(plan->to.n_parallel, 4) << "what nobody asked for stays";
  now_.cost.available = mib * 99;
  EXPECT_EQ(decide(change_, now_)->path, Path::in_place);
  now_.cost.available = mib * 49;
  EXPECT_EQ(refused(), RefusalKind::no_memory);
  now_.cost.available.reset();
  EXPECT_EQ(decide(change_, now_)->path, Path::beside) << "the system does not tell";
}

TEST_F(Deciding, ARequestThatWouldBeCutShortIsNamed) {
  const std::array<Request, 3> requests{{{RequestId(1), Seat(0), Tokens(100)},
                                         {RequestId(2), Seat(1), Tokens(513)},
                                         {RequestId(3), std::nullopt, Tokens(900)}}};
  now_.requests = requests;
  change_.n_ctx = Tokens(512);
  const auto plan = decide(change_, now_);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, RefusalKind::too_small);
  EXPECT_EQ(plan.error().requests, (std::vector{RequestId(2), RequestId(3)}));
  EXPECT_NE(plan.error().message.find("900"), std::string::npos) << plan.error().message;
  change_.n_ctx = Tokens(900);
  EXPECT_TRUE(decide(change_, now_).ok());
}

TEST_F(Deciding, WhatIsNotExactNeedsForce) {
  change_.cache_type_k = KvType::q8_0;
  EXPECT_EQ(refused(), RefusalKind::not_exact);
  change_.force = true;
  EXPECT_FALSE(decide(change_, now_)->keeps_cells);
  change_ = {};
  change_.layout = Layout::split;
  EXPECT_EQ(refused(), RefusalKind::not_exact);
  now_.now.layout = Layout::split;
  change_ = {};
  change_.n_ctx = Tokens(2048);
  EXPECT_TRUE(decide(change_, now_).ok()) << "as many seats: their states are alike";
  change_.n_parallel = 2;
  EXPECT_EQ(refused(), RefusalKind::not_exact);
  change_.n_parallel.reset();
  now_.moves = false;
  EXPECT_EQ(refused(), RefusalKind::not_exact) << "a memory that cannot be copied";
}

TEST_F(Deciding, NonsenseIsSaid) {
  for (const std::int64_t n_ctx : {-5, 0, 1}) {
    change_.n_ctx = Tokens(n_ctx);
    EXPECT_EQ(refused(), RefusalKind::nonsense) << n_ctx;
  }
  change_ = {};
  for (const std::int32_t n_parallel : {-1, 0, 100'000}) {
    change_.n_parallel = n_parallel;
    EXPECT_EQ(refused(), RefusalKind::nonsense) << n_parallel;
  }
}

TEST_F(Deciding, DeterministicKeepsItsShapes) {
  now_.deterministic = true;
  now_.now.layout = Layout::split;
  now_.chunk = Tokens(512);
  change_.layout = Layout::pooled;
  change_.force = true;
  EXPECT_EQ(refused(), RefusalKind::nonsense);
  change_ = {};
  change_.n_ctx = Tokens(511);
  EXPECT_EQ(refused(), RefusalKind::nonsense) << "prompts come in pieces of 512";
  change_.n_ctx = Tokens(512);
  EXPECT_TRUE(decide(change_, now_).ok());
}

}  // namespace
}  // namespace fermata::reconfigure
