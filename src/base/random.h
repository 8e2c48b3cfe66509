// The only sources of randomness: a seeded generator, equal on every machine, and the system's.
#pragma once

#include "base/check.h"

#include <cstdint>
#include <string>

namespace fermata {

// One step of the splitmix64 sequence: a good 64-bit mixer.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// splitmix64 as a generator. Equal seeds give equal sequences. Not thread-safe, not for secrets.
class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t operator()() {
    const std::uint64_t out = mix64(state_);
    state_ += 0x9e3779b97f4a7c15ULL;
    return out;
  }
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return ~std::uint64_t{0}; }

  // Uniform in [low, high]. REQUIRES: low <= high.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    FERMATA_CHECK(low <= high, "empty range");
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
    const std::uint64_t draw = span == 0 ? (*this)() : (*this)() % span;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + draw);
  }
  // True in `percent` of 100 draws.
  bool chance(int percent) { return between(1, 100) <= percent; }

 private:
  std::uint64_t state_;
};

// From the operating system; for seeds that nobody chose and for ids that must not collide.
// Thread-safe.
std::uint64_t system_random();

// `length` characters of A-Z a-z 0-9 from the operating system's source. Thread-safe.
std::string random_alphanumeric(int length);

}  // namespace fermata
