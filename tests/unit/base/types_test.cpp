#include "base/types.h"

#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace fermata {
namespace {

// What the types are for: these must not compile.
static_assert(!std::is_convertible_v<int, Tokens>);
static_assert(!std::is_convertible_v<Tokens, std::int64_t>);
static_assert(!std::is_constructible_v<Tokens, Bytes>);
static_assert(!std::is_constructible_v<Seat, RequestId>);
static_assert(!std::is_convertible_v<int, Seat>);
static_assert(!std::is_convertible_v<int, TokenId>);
template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Compares = requires(A a, B b) {
  a < b;
};
static_assert(Adds<Tokens, Tokens>);
static_assert(!Adds<Tokens, Bytes>);
static_assert(!Adds<Tokens, int>);
static_assert(!Adds<Seat, Seat>);
static_assert(Compares<Micros, Micros>);
static_assert(!Compares<Micros, Tokens>);
// A vector of tokens is a plain array of 32-bit integers.
static_assert(sizeof(TokenId) == 4 && std::is_trivially_copyable_v<TokenId>);

TEST(Quantity, CountsItsOwnUnit) {
  Tokens sum = Tokens(5) + Tokens(3) - Tokens(1);
  EXPECT_EQ(sum, Tokens(7));
  sum += Tokens(2);
  sum -= Tokens(4);
  EXPECT_EQ(sum.value, 5);
  EXPECT_EQ(Tokens(7) * 3, Tokens(21));
  EXPECT_EQ(Tokens(7) / 2, Tokens(3));
  EXPECT_LT(Tokens(-1), Tokens());
}

TEST(Id, NamesOneThing) {
  EXPECT_EQ(Seat(), Seat(0));
  EXPECT_NE(Seat(1), Seat(2));
  EXPECT_LT(RequestId(1), RequestId(2));
  const std::unordered_set<Seat> seats{Seat(1), Seat(2), Seat(1)};
  EXPECT_EQ(seats.size(), 2U);
}

TEST(TokenId, IsReadAtTheEdges) { EXPECT_EQ(raw(TokenId{42}), 42); }

}  // namespace
}  // namespace fermata
