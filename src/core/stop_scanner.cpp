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
  std::size_t best = std::string::npos;
  for (const std::string& word : words_) {
    const std::size_t at = held_.find(word);
    if (at < best || (at == best && at != std::string::npos && word.size() > stop_word_.size())) {
      best = at;
      stop_word_ = word;
    }
  }
  const std::size_t shown = best != std::string::npos ? best : held_from(held_);
  released.assign(held_, 0, shown);
  held_.erase(0, shown);
  if (best == std::string::npos) return false;
  held_.clear();
  return true;
}

std::string StopScanner::flush() { return std::exchange(held_, std::string()); }

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
