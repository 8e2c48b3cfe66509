// Faults that are asked for: they come in the asked share, change nothing, and nothing else fails.
#include "engine/faulty.h"

#include "engine/fake/fake_engine.h"

#include <array>

#include <gtest/gtest.h>

namespace fermata::engine {
namespace {

constexpr std::array<TokenId, 2> tokens{TokenId{70}, TokenId{71}};

FaultyEngine faulty(const InjectedFaults& faults) {
  return {
      std::make_unique<fake::FakeEngine>(
          fake::FakeModelSpec{}, Geometry{.n_ctx = Tokens(256), .n_parallel = 2}, EngineOptions{}),
      faults, 1};
}

StepOutcome step(Engine& engine, GroupResult& result) {
  RowGroup group;
  group.seat = Seat(0);
  group.first = engine.position(Seat(0));
  group.tokens = tokens;
  return engine.step({&group, 1}, {&result, 1});
}

TEST(FaultyEngine, WithoutFaultsIsTheEngineItself) {
  FaultyEngine engine = faulty({});
  GroupResult result;
  ASSERT_EQ(step(engine, result), StepOutcome::done);
  ByteBuffer bytes;
  ASSERT_TRUE(engine.export_range(Seat(0), Tokens(0), Tokens(2), bytes).ok());
  ASSERT_TRUE(engine.import_range(Seat(1), bytes).ok());
  EXPECT_EQ(engine.position(Seat(1)), Tokens(2));
  ASSERT_TRUE(engine.export_sequence(Seat(1), bytes).ok());
  engine.clear(Seat(1));
  ASSERT_TRUE(engine.import_sequence(Seat(1), bytes).ok());
  EXPECT_EQ(engine.position(Seat(1)), Tokens(2));
}

TEST(FaultyEngine, StepsWithoutRoomComputeNothing) {
  FaultyEngine engine = faulty({.no_room_percent = 40});
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    const Tokens before = engine.position(Seat(0));
    GroupResult result;
    const StepOutcome outcome = step(engine, result);
    const bool done = outcome == StepOutcome::done;
    EXPECT_EQ(engine.position(Seat(0)) - before, Tokens(done ? 2 : 0));
    EXPECT_EQ(result.computed, Tokens(done ? 2 : 0));
    refused += outcome == StepOutcome::no_room;
  }
  EXPECT_GT(refused, 20);
  EXPECT_LT(refused, 60);
}

TEST(FaultyEngine, CopiesThatFailLeaveSeatsAsTheyWere) {
  FaultyEngine good = faulty({});
  GroupResult result;
  ASSERT_EQ(step(good, result), StepOutcome::done);
  ByteBuffer range, sequence;
  ASSERT_TRUE(good.export_range(Seat(0), Tokens(0), Tokens(2), range).ok());
  ASSERT_TRUE(good.export_sequence(Seat(0), sequence).ok());

  FaultyEngine engine = faulty({.move_percent = 100});
  ASSERT_EQ(step(engine, result), StepOutcome::done);
  ByteBuffer bytes;
  EXPECT_EQ(engine.export_range(Seat(0), Tokens(0), Tokens(2), bytes).error(), MoveFault::no_room);
  EXPECT_EQ(engine.export_sequence(Seat(0), bytes).error(), MoveFault::no_room);
  EXPECT_EQ(engine.import_range(Seat(1), range).error(), MoveFault::no_room);
  EXPECT_EQ(engine.import_sequence(Seat(1), sequence).error(), MoveFault::no_room);
  EXPECT_EQ(engine.position(Seat(0)), Tokens(2));
  EXPECT_EQ(engine.position(Seat(1)), Tokens(0));
}

}  // namespace
}  // namespace fermata::engine
