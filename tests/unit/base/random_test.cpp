#include "base/random.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata {
namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

static_assert(std::uniform_random_bit_generator<Random>);

// The published sequence of splitmix64 for seed 0: a seed means the same on every machine and in
// every release.
TEST(Random, FollowsTheReferenceSequence) {
  Random random(0);
  EXPECT_EQ(random(), 0xE220A8397B1DCDAFULL);
  EXPECT_EQ(random(), 0x6E789E6AA1B965F4ULL);
  EXPECT_EQ(random(), 0x06C45D188009454FULL);
}

TEST(Random, EqualSeedsAgreeAndOthersDoNot) {
  Random first(7), second(7), other(8);
  std::vector<std::int64_t> a, b, c;
  for (int i = 0; i < 100; ++i) {
    a.push_back(first.between(0, 1'000'000));
    b.push_back(second.between(0, 1'000'000));
    c.push_back(other.between(0, 1'000'000));
  }
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

TEST(Random, CopyGoesOnFromTheSameState) {
  Random random(3);
  (void)random();
  Random copy = random;
  EXPECT_EQ(copy(), random());
}

RC_GTEST_PROP(Random, BetweenStaysWithinItsBounds, (std::uint64_t seed)) {
  auto low = *rc::gen::arbitrary<std::int64_t>();
  auto high = *rc::gen::arbitrary<std::int64_t>();
  if (high < low) std::swap(low, high);
  const std::int64_t drawn = Random(seed).between(low, high);
  RC_ASSERT(low <= drawn && drawn <= high);
}

TEST(Random, BetweenCopesWithTheExtremes) {
  Random random(1);
  EXPECT_EQ(random.between(lowest, lowest), lowest);
  EXPECT_EQ(random.between(highest, highest), highest);
  EXPECT_EQ(random.between(0, 0), 0);
  bool negative = false, positive = false;
  for (int i = 0; i < 200; ++i) {
    const std::int64_t any = random.between(lowest, highest);
    negative |= any < 0;
    positive |= any > 0;
    EXPECT_LE(random.between(lowest, -1), -1);
    EXPECT_GE(random.between(highest - 1, highest), highest - 1);
    EXPECT_LE(random.between(lowest, lowest + 1), lowest + 1);
  }
  EXPECT_TRUE(negative && positive);
}

TEST(Random, BetweenReachesEveryValueBothEndsIncluded) {
  Random random(2);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 500; ++i) seen.insert(random.between(-2, 2));
  EXPECT_EQ(seen, (std::set<std::int64_t>{-2, -1, 0, 1, 2}));
}

TEST(Random, ChanceIsInPercent) {
  Random random(4);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(random.chance(0));
    EXPECT_TRUE(random.chance(100));
    hits += random.chance(25);
  }
  EXPECT_GT(hits, 2'300);
  EXPECT_LT(hits, 2'700);
}

TEST(RandomDeathTest, EmptyRangeEndsTheProcess) {
  EXPECT_DEATH((void)Random(1).between(2, 1), "empty range");
}

TEST(SystemRandom, DoesNotRepeatItself) {
  std::set<std::uint64_t> numbers;
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) {
    numbers.insert(system_random());
    names.insert(random_alphanumeric(24));
  }
  EXPECT_EQ(numbers.size(), 100U);
  EXPECT_EQ(names.size(), 100U);
}

TEST(SystemRandom, NamesHaveTheAskedLengthAndOnlyLettersAndDigits) {
  EXPECT_EQ(random_alphanumeric(0), "");
  const std::string name = random_alphanumeric(2000);
  EXPECT_EQ(name.size(), 2000U);
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  EXPECT_TRUE(std::all_of(name.begin(), name.end(), is_plain));
  EXPECT_EQ(std::set<char>(name.begin(), name.end()).size(), 62U);
}

}  // namespace
}  // namespace fermata
