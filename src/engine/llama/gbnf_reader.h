// GBNF as rules, in the shape the library compiles it to: repeats become rules of their own.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::engine::llama {

struct GbnfItem {
  std::int32_t rule = -1;     // -1: a terminal, which takes at least one character.
  std::int32_t elements = 1;  // What it costs the library.
};
using GbnfSequence = std::vector<GbnfItem>;

struct GbnfRule {
  std::vector<GbnfSequence> alternatives;  // Empty: named, but not defined.
};

struct Gbnf {
  std::vector<GbnfRule> rules;
  std::int32_t root = -1;
};

// Reads what the library accepts, within its limits and ours. Error: one line with the line number.
// `is_token` says whether "<text>" is one token. REQUIRES: valid UTF-8 without NUL.
Result<Gbnf, std::string> read_gbnf(std::string_view text,
                                    const std::function<bool(std::string_view)>& is_token);

}  // namespace fermata::engine::llama
