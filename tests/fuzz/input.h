// What every fuzz target needs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace fermata::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// What does not hold ends the process, which is how libFuzzer learns of it.
inline void require(bool holds, const char* what, std::string_view shown = {}) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n%.*s\n", what, static_cast<int>(shown.size()),
               shown.data());
  std::abort();
}

// The sizes of the pieces that an input is cut into: the same for the same input.
class Sizes {
 public:
  explicit Sizes(std::string_view text) {
    for (const char c : text) state_ = (state_ ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  std::size_t next() {
    state_ = state_ * 1664525U + 1013904223U;
    return 1 + (state_ >> 24) % 7;
  }

 private:
  std::uint32_t state_ = 2166136261U;
};

}  // namespace fermata::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
