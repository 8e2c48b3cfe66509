#include "bench/report.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fermata::bench
