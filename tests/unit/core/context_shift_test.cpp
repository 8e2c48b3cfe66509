#include "core/context_shift.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

ContextShift shift_of(std::int64_t n_keep, std::int64_t n_discard, bool adds_bos = false) {
  Request request;
  request.prompt.resize(40);
  request.n_keep = Tokens(n_keep);
  request.n_discard = Tokens(n_discard);
  return context_shift_of(request, Tokens(255), Tokens(256), adds_bos);
}

TEST(ContextShift, DropsHalfOfWhatIsNotKept) {
  EXPECT_EQ(shift_of(0, 0).keep, Tokens(0));
  EXPECT_EQ(shift_of(0, 0).discard, Tokens(127));
  EXPECT_EQ(shift_of(10, 0).keep, Tokens(10));
  EXPECT_EQ(shift_of(10, 0).discard, Tokens(122));
  EXPECT_EQ(shift_of(10, 0, true).keep, Tokens(11));
  EXPECT_EQ(shift_of(-1, 0).keep, Tokens(40));
  EXPECT_EQ(shift_of(10, 7).discard, Tokens(7));
}

TEST(ContextShift, LeavesSomethingWhateverIsAsked) {
  for (const std::int64_t keep : {-1, 0, 1, 200, 251, 252, 253, 255, 256, 2147483647}) {
    for (const std::int64_t discard : {0, 1, 100, 254, 255, 2147483647}) {
      for (const bool adds_bos : {false, true}) {
        const ContextShift by = shift_of(keep, discard, adds_bos);
        EXPECT_GE(by.keep, Tokens(0));
        EXPECT_LE(by.keep, Tokens(252));
        EXPECT_GE(by.discard, Tokens(1));
        EXPECT_LT(by.keep + by.discard, Tokens(255));
      }
    }
  }
}

}  // namespace
}  // namespace fermata
