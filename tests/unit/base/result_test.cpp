#include "base/result.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace fermata {
namespace {

enum class Trouble { small, large };

TEST(Result, HoldsAValueOrATroubleNeverBoth) {
  const Result<int, Trouble> good = 3;
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(static_cast<bool>(good));
  EXPECT_EQ(good.value(), 3);
  EXPECT_EQ(*good, 3);

  const Result<int, Trouble> bad = Err(Trouble::large);
  ASSERT_FALSE(bad.ok());
  EXPECT_FALSE(static_cast<bool>(bad));
  EXPECT_EQ(bad.error(), Trouble::large);
}

TEST(Result, ValueAndErrorOfOneTypeAreNotConfused) {
  const Result<std::string, std::string> good = std::string("text");
  const Result<std::string, std::string> bad = Err(std::string("text"));
  EXPECT_TRUE(good.ok());
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(*good, bad.error());
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>, Trouble> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, ValueCanBeChangedInPlace) {
  Result<std::string, Trouble> result = std::string("ab");
  result->push_back('c');
  *result += 'd';
  result.value() += 'e';
  EXPECT_EQ(result.value(), "abcde");
}

TEST(Result, WithoutAValueItIsGoodByDefault) {
  const Result<void, Trouble> good;
  EXPECT_TRUE(good.ok());
  const Result<void, Trouble> bad = Err(Trouble::small);
  EXPECT_FALSE(static_cast<bool>(bad));
  EXPECT_EQ(bad.error(), Trouble::small);
}

TEST(ResultDeathTest, ReadingTheOtherHalfEndsTheProcess) {
  Result<int, Trouble> good = 1;
  Result<int, Trouble> bad = Err(Trouble::small);
  const Result<void, Trouble> nothing;
  EXPECT_DEATH((void)bad.value(), "value\\(\\) of a failed Result");
  EXPECT_DEATH((void)*bad, "value\\(\\) of a failed Result");
  EXPECT_DEATH((void)std::move(bad).value(), "value\\(\\) of a failed Result");
  EXPECT_DEATH((void)good.error(), "error\\(\\) of a good Result");
  EXPECT_DEATH((void)nothing.error(), "error\\(\\) of a good Result");
}

}  // namespace
}  // namespace fermata
