#include "settings/nearest.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fermata::settings {
namespace {

TEST(EditDistance, CountsSlips) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("port", "port"), 0U);
  EXPECT_EQ(edit_distance("prot", "port"), 1U);
  EXPECT_EQ(edit_distance("por", "port"), 1U);
  EXPECT_EQ(edit_distance("portt", "port"), 1U);
  EXPECT_EQ(edit_distance("part", "port"), 1U);
  EXPECT_EQ(edit_distance("", "port"), 4U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(EditDistance, IsSymmetricAndBoundedByTheLongerWord) {
  EXPECT_TRUE(rc::check([](const std::string& a, const std::string& b) {
    const std::size_t distance = edit_distance(a, b);
    RC_ASSERT(distance == edit_distance(b, a));
    RC_ASSERT(distance <= std::max(a.size(), b.size()));
    RC_ASSERT((distance == 0) == (a == b));
  }));
}

TEST(Nearest, NamesOnlyWhatIsNear) {
  constexpr std::array<std::string_view, 4> known = {"-m", "--port", "--props", "--parallel"};
  EXPECT_EQ(nearest("--prot", known), "--port");
  EXPECT_EQ(nearest("--paralel", known), "--parallel");
  EXPECT_EQ(nearest("--m", known), "-m");
  EXPECT_EQ(nearest("-z", known), "");
  EXPECT_EQ(nearest("--something-else", known), "");
  EXPECT_EQ(nearest(std::string(100000, '-'), known), "");
}

}  // namespace
}  // namespace fermata::settings
