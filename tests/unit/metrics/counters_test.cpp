#include "metrics/counters.h"

#include "metrics/exposition.h"
#include "metrics/histogram.h"

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

TEST(TimeHistogram, PutsEachTimeIntoOneBucket) {
  TimeHistogram times;
  times.observe(Micros(0));
  times.observe(TimeHistogram::bounds[0]);  // Bounds are inclusive.
  times.observe(TimeHistogram::bounds[0] + Micros(1));
  times.observe(TimeHistogram::bounds.back() + Micros(1));
  EXPECT_EQ(times.count(0), 2U);
  EXPECT_EQ(times.count(1), 1U);
  EXPECT_EQ(times.count(TimeHistogram::buckets - 1), 1U);
  EXPECT_EQ(times.sum_us(), 100U + 101U + 600'000'001U);
  for (std::size_t i = 1; i < TimeHistogram::bounds.size(); ++i) {
    EXPECT_LT(TimeHistogram::bounds[i - 1], TimeHistogram::bounds[i]);
  }
}

TEST(Exposition, WritesLabelsAndCumulativeBucketsInSeconds) {
  TimeHistogram times;
  times.observe(Micros(2'000));
  times.observe(Micros(20'000));
  Exposition out;
  out.counter("parks_total", "Parks.", 3, {{"mode", "swap"}});
  out.counter("parks_total", "Parks.", 4, {{"mode", "recompute"}});
  out.histogram("wait_seconds", "Waits.", times);
  const std::string text = out.text();
  const auto has = [&](const std::string& line) {
    return text.find(line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("parks_total{mode=\"swap\"} 3")) << text;
  EXPECT_TRUE(has("parks_total{mode=\"recompute\"} 4"));
  EXPECT_EQ(text.find("# TYPE parks_total counter"), text.rfind("# TYPE parks_total counter"));
  EXPECT_TRUE(has("wait_seconds_bucket{le=\"0.001\"} 0")) << text;
  EXPECT_TRUE(has("wait_seconds_bucket{le=\"0.003\"} 1"));
  EXPECT_TRUE(has("wait_seconds_bucket{le=\"0.03\"} 2"));
  EXPECT_TRUE(has("wait_seconds_bucket{le=\"+Inf\"} 2"));
  EXPECT_TRUE(has("wait_seconds_count 2"));
  EXPECT_NE(text.find("wait_seconds_sum 0.022"), std::string::npos);
}

}  // namespace
}  // namespace fermata
