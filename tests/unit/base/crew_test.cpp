// Jobs shared between threads: each is done once, and all before run() returns.
#include "base/crew.h"

#include <atomic>
#include <latch>

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(Crew, DoesEveryJobOnceBeforeItReturns) {
  for (const std::int32_t helpers : {0, 1, 3}) {
    Crew crew(helpers);
    for (std::size_t count = 0; count < 200; ++count) {
      std::vector<int> done(count, 0);  // Not atomic: TSan sees a job that is done twice.
      crew.run(count, [&](std::size_t i) { ++done[i]; });
      EXPECT_EQ(done, std::vector<int>(count, 1));
    }
  }
}

TEST(Crew, HelpersTakePart) {
  Crew crew(1);
  std::latch both(2);  // Two jobs that wait for each other need two threads.
  crew.run(2, [&](std::size_t) { both.arrive_and_wait(); });
  EXPECT_TRUE(both.try_wait());
}

}  // namespace
}  // namespace fermata
