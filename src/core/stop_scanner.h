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
  // was met: the reply ended before it, stop_word() names it, nothing more may be fed.
  // Of several words that match, the one that begins first wins, however the text is cut: a word
  // that is complete waits while one that began earlier can still come true. Of those that are
  // complete at one place the longest is named.
  [[nodiscard]] bool feed(std::string_view piece, std::string& released);

  // The reply ended: what was held back, up to a word that was waiting (stop_word() names it then).
  std::string flush();
  // Empty as long as no word was met.
  const std::string& stop_word() const { return stop_word_; }

 private:
  struct Match {
    std::size_t at = std::string::npos;  // In held_; npos: none.
    const std::string* word = nullptr;
  };
  Match first_match() const;
  std::size_t held_from(std::string_view text) const;

  std::vector<std::string> words_;
  std::size_t longest_ = 0;
  std::string held_;
  std::string stop_word_;
};

}  // namespace fermata
