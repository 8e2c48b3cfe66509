// Ids and quantities as types: they do not convert into each other, so a position cannot be passed
// where a count is meant. Values are plain integers underneath; `.value` reads them at the edges
// (JSON, libllama, arithmetic across units).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace fermata {

// A name for one thing. No arithmetic.
template <class Tag, class Rep>
struct Id {
  Rep value{};

  constexpr Id() = default;
  constexpr explicit Id(Rep v) : value(v) {}
  friend constexpr auto operator<=>(Id, Id) = default;
};

// An amount of one unit. Adds and compares with its own kind only.
template <class Tag>
struct Quantity {
  std::int64_t value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t v) : value(v) {}
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Quantity a, std::int64_t k) { return Quantity(a.value * k); }
  friend constexpr Quantity operator/(Quantity a, std::int64_t k) { return Quantity(a.value / k); }
  constexpr Quantity& operator+=(Quantity b) {
    value += b.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) {
    value -= b.value;
    return *this;
  }
};

using Tokens = Quantity<struct TokensTag>;  // a number of tokens (or of cells: one token fills one)
using Bytes = Quantity<struct BytesTag>;
using Micros = Quantity<struct MicrosTag>;  // a duration, or a time since the clock's start

// One vocabulary entry. An enum, so that a vector of them is a plain array of 32-bit integers.
enum class TokenId : std::int32_t {};
constexpr std::int32_t raw(TokenId t) { return static_cast<std::int32_t>(t); }

using RequestId = Id<struct RequestTag, std::uint64_t>;  // unique for the process's life
using GroupId = Id<struct GroupTag, std::uint64_t>;      // choices of one request; 0: none
using Seat = Id<struct SeatTag, std::int32_t>;           // 0 .. n_parallel-1; llama-server's slot

}  // namespace fermata

template <class Tag, class Rep>
struct std::hash<fermata::Id<Tag, Rep>> {
  std::size_t operator()(fermata::Id<Tag, Rep> id) const { return std::hash<Rep>{}(id.value); }
};
