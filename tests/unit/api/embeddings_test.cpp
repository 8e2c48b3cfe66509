#include "api/embeddings.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

engine::Vector normalized(engine::Vector vector, std::int64_t how) {
  normalize(vector, how);
  return vector;
}

TEST(Normalize, DividesByTheNormThatIsAskedFor) {
  EXPECT_EQ(normalized({3, -4}, -1), (engine::Vector{3, -4}));
  EXPECT_EQ(normalized({3, -4}, 0), (engine::Vector{24570, -32760}));
  EXPECT_FLOAT_EQ(normalized({3, -4}, 1)[1], -4.0F / 7.0F);
  EXPECT_FLOAT_EQ(normalized({3, -4}, 2)[0], 0.6F);
  EXPECT_FLOAT_EQ(normalized({3, -4}, 3)[0], 3.0F / std::cbrt(91.0F));
}

TEST(Normalize, LeavesNothingThatIsNoNumber) {
  for (const std::int64_t how : {-1, 0, 1, 2, 3, 2147483647}) {
    EXPECT_EQ(normalized({0, 0}, how), (engine::Vector{0, 0}));
    for (const float value : normalized({1e30F, -1e-30F}, how)) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(Base64, HasTheBytesOfTheNumbers) {
  EXPECT_EQ(base64_of({}), "");
  EXPECT_EQ(base64_of({1.0F}), "AACAPw==");
  EXPECT_EQ(base64_of({1.0F, -2.0F}), "AACAPwAAAMA=");
  EXPECT_EQ(base64_of({0.5F, 0.25F, 0.125F}), "AAAAPwAAgD4AAAA+");
}

}  // namespace
}  // namespace fermata::api
