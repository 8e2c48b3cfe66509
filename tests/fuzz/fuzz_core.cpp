// Stop words and characters: lines up to an empty one are the words, the rest is a reply. However
// it is cut, the same text is shown, in whole characters.
#include "core/stop_scanner.h"
#include "core/utf8.h"
#include "input.h"

#include <algorithm>
#include <vector>

namespace fermata::fuzz {
namespace {

struct Shown {
  std::string text;
  std::string word;
};

template <class Next>
Shown scan(const std::vector<std::string>& words, std::string_view reply, Next next_size) {
  StopScanner scanner(words);
  Utf8Cutter cutter;
  Shown out;
  const auto show = [&](const std::string& bytes) {
    const std::string whole = cutter.feed(bytes);
    require(is_valid_utf8(whole), "a piece is whole characters", whole);
    out.text += whole;
  };
  bool met = false;
  std::string released;
  while (!reply.empty() && !met) {
    const std::size_t size = std::min<std::size_t>(reply.size(), next_size());
    met = scanner.feed(reply.substr(0, size), released);
    reply.remove_prefix(size);
    show(released);
  }
  if (!met) show(scanner.flush());
  out.text += cutter.flush();
  out.word = scanner.stop_word();
  require(is_valid_utf8(out.text), "a reply is whole characters", out.text);
  return out;
}

// Where two words begin at one place, the one that is complete in the piece at hand is named.
void require_equal(const Shown& one, const Shown& other) {
  require(one.text == other.text, "the same text however it is cut", other.text);
  require(one.word.empty() == other.word.empty(), "a stop word is met however it is cut");
  require(one.word.starts_with(other.word) || other.word.starts_with(one.word),
          "the words that are named begin at one place", other.word);
}

void check(std::string_view input) {
  std::vector<std::string> words;
  while (!input.empty() && words.size() < 8) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::string_view word = input.substr(0, end);
    input.remove_prefix(std::min(input.size(), end + 1));
    if (word.empty()) break;
    words.emplace_back(word);
  }
  const Shown whole = scan(words, input, [&] { return input.size(); });
  const Shown bytes = scan(words, input, [] { return std::size_t{1}; });
  Sizes sizes(input);
  const Shown pieces = scan(words, input, [&] { return sizes.next(); });
  require_equal(whole, bytes);
  require_equal(whole, pieces);
  if (whole.word.empty()) {
    require(whole.text == replace_invalid_utf8(input), "without a stop word all is shown");
    for (const std::string& word : words) {
      require(input.find(word) == std::string_view::npos, "a stop word was met", word);
    }
  } else {
    const std::size_t at = input.find(whole.word);
    require(at != std::string_view::npos, "the word that is named was there", whole.word);
  }
}

}  // namespace
}  // namespace fermata::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fermata::fuzz::check(fermata::fuzz::text_of(data, size));
  return 0;
}
