#include "base/check.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(Check, EvaluatesItsConditionOnceAndGoesOn) {
  int evaluated = 0;
  FERMATA_CHECK(++evaluated == 1, "the first time");
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeathTest, TellsWhereWhatAndWhy) {
  EXPECT_DEATH(FERMATA_CHECK(1 + 1 == 3, "sums hold"),
               "check_test.cpp:[0-9]+: check failed: 1 \\+ 1 == 3 \\(sums hold\\)");
}

}  // namespace
}  // namespace fermata
