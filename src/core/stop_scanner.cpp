#include "core/stop_scanner.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace fermata {

StopScanner::StopScanner(std::vector<std::string> words) : words_(std::move(words)) {
  for (const std::string& word : words_) {
    FERMATA_CHECK(!word.empty(), "an empty stop word would end every reply");
    longest_ = std::max(longest_, word.size());
  }
}

bool StopScanner::feed(std::string_view piece, std::string& released) {
  FERMATA_CHECK(stop_word_.empty(), "fed after the end");
  if (words_.empty()) {
    released.assign(piece);
    return false;
  }
  held_ += piece;
  const Match match = first_match();
  const std::size_t undecided = held_from(held_);
  if (match.word == nullptr || undecided < match.at) {
    released.assign(held_, 0, undecided);
    held_.erase(0, undecided);
    return false;
  }
  released.assign(held_, 0, match.at);
  held_.clear();
  stop_word_ = *match.word;
  return true;
}

std::string StopScanner::flush() {
  const Match match = first_match();
  if (match.word != nullptr) {
    stop_word_ = *match.word;
    held_.resize(match.at);
  }
  return std::exchange(held_, std::string());
}

StopScanner::Match StopScanner::first_match() const {
  Match best;
  for (const std::string& word : words_) {
    const std::size_t at = held_.find(word);
    if (at == std::string::npos) continue;
    if (at < best.at || (at == best.at && word.size() > best.word->size())) best = {at, &word};
  }
  return best;
}

// Where the longest suffix of `text` begins that is the beginning of a word.
std::size_t StopScanner::held_from(std::string_view text) const {
  const std::size_t first = text.size() >= longest_ ? text.size() - longest_ + 1 : 0;
  for (std::size_t at = first; at < text.size(); ++at) {
    const std::string_view suffix = text.substr(at);
    for (const std::string& word : words_) {
      if (std::string_view(word).starts_with(suffix)) return at;
    }
  }
  return text.size();
}

}  // namespace fermata
