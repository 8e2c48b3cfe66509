// Finds stop words in a reply that arrives in pieces, and holds back only what may still become
// one. Bytes, not characters: a word may cross any boundary.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fermata {

class StopScanner {
 public:
  // REQUIRES: no word is empty.
  explicit StopScanner(std::vector<std::string> words);

  // Takes the next piece. `released` is set to the bytes that can be shown now. True when a word
  // was completed: the reply ended before it, stop_word() names it, nothing more may be fed.
  // Of several words that match, the one that begins first wins, then the longest.
  [[nodiscard]] bool feed(std::string_view piece, std::string& released);

  // The reply ended without a word: what was held back.
  std::string flush();
  const std::string& stop_word() const { return stop_word_; }

 private:
  std::size_t held_from(std::string_view text) const;

  std::vector<std::string> words_;
  std::size_t longest_ = 0;
  std::string held_;
  std::string stop_word_;
};

}  // namespace fermata
