#include "base/clock.h"

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(FakeClock, MovesOnlyWhenItIsTold) {
  FakeClock clock;
  const Micros start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(Micros(5));
  clock.advance(Micros(0));
  EXPECT_EQ(clock.now(), start + Micros(5));
}

TEST(FakeClock, LosesNoTimeOfSeveralThreads) {
  FakeClock clock;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&clock] {
      for (int i = 0; i < 1000; ++i) clock.advance(Micros(1));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(clock.now(), Micros(4000));
}

TEST(FakeClockDeathTest, NeverRunsBackwards) {
  FakeClock clock;
  EXPECT_DEATH(clock.advance(Micros(-1)), "a clock never runs backwards");
}

TEST(SteadyClock, NeverRunsBackwards) {
  const SteadyClock clock;
  Micros last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const Micros now = clock.now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(SteadyClock, CountsMicroseconds) {
  const auto microseconds = [] {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  const std::int64_t before = microseconds();
  const Micros now = SteadyClock().now();
  EXPECT_LE(before, now.value);
  EXPECT_LE(now.value, microseconds());
}

TEST(WallClock, IsInSecondsAfterThisWasWritten) {
  EXPECT_GT(wall_clock_seconds(), 1'700'000'000);
  EXPECT_LT(wall_clock_seconds(), 100'000'000'000);
}

}  // namespace
}  // namespace fermata
