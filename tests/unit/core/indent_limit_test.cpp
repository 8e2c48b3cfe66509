#include "core/indent_limit.h"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata {
namespace {

struct Fed {
  std::string text;
  bool ended = false;
};

Fed feed(std::size_t least, const std::vector<std::string>& pieces) {
  IndentLimit limit(least);
  Fed out;
  for (std::string piece : pieces) {
    out.ended = limit.feed(piece);
    out.text += piece;
    if (out.ended) break;
  }
  return out;
}

TEST(IndentLimit, EndsAtALineTooFarLeft) {
  const std::string text = "x\n    y\n\tz";
  EXPECT_FALSE(feed(0, {text}).ended);
  EXPECT_FALSE(feed(1, {text}).ended);
  EXPECT_EQ(feed(4, {text}).text, "x\n    y\n\t");
  EXPECT_EQ(feed(5, {text}).text, "x\n    ");
  EXPECT_EQ(feed(1, {"a\n\nb"}).text, "a\n") << "an empty line counts";
  EXPECT_EQ(feed(2, {"a\n ", "b"}).text, "a\n ");
  EXPECT_FALSE(feed(2, {"the first line is free\n  "}).ended);
}

RC_GTEST_PROP(IndentLimit, DoesNotDependOnTheCuts, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab \t\n")));
  const auto least = *rc::gen::inRange<std::size_t>(0, 4);
  std::vector<std::string> letters;
  for (const char c : text) letters.emplace_back(1, c);
  const Fed whole = feed(least, {text});
  const Fed cut = feed(least, letters);
  RC_ASSERT(whole.text == cut.text);
  RC_ASSERT(whole.ended == cut.ended);
}

}  // namespace
}  // namespace fermata
