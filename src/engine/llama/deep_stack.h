// A stack as deep as a text is long. Most pre-tokenizers of the library are std::regex, which
// recurses once per character of a match: 24,000 letters without a space overflow a usual stack.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace fermata::engine::llama {

// Texts up to this many bytes need no special stack.
inline constexpr std::size_t shallow_text_bytes = std::size_t{8} << 10;
// What the deepest stack is made for.
inline constexpr std::size_t deep_text_bytes = std::size_t{1} << 20;

// The text in pieces that can each be matched on a deep stack. One piece, unless a line (or a gap
// between words) is longer than deep_text_bytes; then it is cut between characters, and the tokens
// at the cut may differ from those of the whole.
std::vector<std::string_view> matchable_pieces(std::string_view text, std::size_t piece_bytes);

// Runs `work` on a thread of its own whose stack fits a text of that many bytes (up to
// deep_text_bytes) and waits for it. The memory is only used as far as the recursion goes. What
// `work` throws is thrown here. False: no such thread could be made, `work` has not run.
bool run_on_deep_stack(std::size_t text_bytes, const std::function<void()>& work);

}  // namespace fermata::engine::llama
