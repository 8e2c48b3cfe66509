#include "bench/report.h"

#include "bench/process.h"
#include "bench/rivals.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace fermata::bench {
namespace {

TEST(Figures, MedianAndPercentileAreValuesThatWereMeasured) {
  EXPECT_EQ(median({3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median({4.0}), 4.0);
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  EXPECT_EQ(percentile(hundred, 99.0), 99.0);
  EXPECT_EQ(percentile(hundred, 100.0), 100.0);
  EXPECT_EQ(percentile(hundred, 0.0), 1.0);
}

TEST(Figures, TheMachineIsNamed) {
  const Json what = machine();
  EXPECT_GE(what["cores"].get<int>(), 1);
  EXPECT_FALSE(what["memory"].get<std::string>().empty());
}

TEST(Figures, ARatioIsTheMedianOfThePairs) {
  EXPECT_EQ((Pairs{{2.0, 9.0, 4.0}, {1.0, 3.0, 1.0}}.ratio()), 3.0);
}

TEST(Processes, ThreadsAreToldApart) {
  const auto self = look_at(getpid());
  ASSERT_TRUE(self.ok()) << self.error();
  EXPECT_GT(self->resident_bytes, 0);
  EXPECT_GE(self->cpu_ns.size(), 1U);
  EXPECT_FALSE(look_at(0).ok());
  ProcessFigures before, after;
  before.cpu_ns = {{1, 100}, {2, 50}};
  after.cpu_ns = {{1, 1100}, {2, 80}, {3, 7}};
  EXPECT_EQ(after.all_cpu_ns(), 1187);
  EXPECT_EQ(cpu_ns_beside_busiest(before, after), 37);
}

}  // namespace
}  // namespace fermata::bench
