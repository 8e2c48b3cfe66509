#include "metrics/counters.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(Counters, LoseNothingOfSeveralThreads) {
  Counter counter;
  Gauge gauge;
  gauge.set(10);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        counter.add();
        counter.add(2);
        gauge.add(3);
        gauge.add(-4);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 12'000U);
  EXPECT_EQ(gauge.value(), 10 - 4000);
}

TEST(Counters, GaugeTellsWhatItCameTo) {
  Gauge gauge;
  EXPECT_EQ(gauge.add(5), 5);
  EXPECT_EQ(gauge.add(-7), -2);
}

}  // namespace
}  // namespace fermata
