// Grammars and schemas come from clients. The library compiles them by recursion and without
// limits: some would end the process (deep nesting, "%llguidance"), fill its memory (left recursion
// through an empty rule, repeats of long literals) or never finish (rules that branch at every
// level). They are read here first and refused with a reason. Pure functions, no library.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace fermata::engine::llama {

inline constexpr std::size_t grammar_bytes_max = std::size_t{1} << 20;
inline constexpr int grammar_nesting_max = 256;
inline constexpr int json_nesting_max = 128;

// Whether "<text>" names exactly one token.
using IsToken = std::function<bool(std::string_view)>;

// Empty when the library can compile this GBNF grammar; else what is wrong, in one line. A limit: a
// grammar that says the same text in many ways, each with another rest to come, still costs the
// library time and memory for every way while it runs.
std::string find_grammar_fault(const std::string& grammar, const IsToken& is_token);

// Empty when brackets nest at most json_nesting_max deep; else one line. No full check: the text
// may be no JSON at all.
std::string find_nesting_fault(std::string_view json);

}  // namespace fermata::engine::llama
