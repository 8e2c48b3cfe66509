// What a client writes in a message is text: where it spells a control token of the model, it must
// not become one.
#pragma once

#include "api/fields.h"
#include "engine/vocabulary.h"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::api {

// A text, and where in it tokenizing begins anew: inside of every control token that a client
// spelled, so that its halves are ordinary text.
struct CutText {
  std::string text;
  std::vector<std::size_t> cuts;  // Ascending, each inside of `text`.
};

// Takes every occurrence of a mark out of a text, and cuts there.
CutText cut_at(std::string_view text, std::string_view mark);

// Control tokens are read in `text`, but not across cuts.
std::vector<TokenId> tokenize(const CutText& text, const engine::Vocabulary& vocabulary);

// The spellings of all control tokens. Constant; thread-safe.
class ControlTexts {
 public:
  explicit ControlTexts(const engine::Vocabulary& vocabulary);

  // Puts the mark into every spelling of a control token that the messages hold, but for those of
  // the assistant, which are the model's own. REQUIRES: read_messages() gave them.
  void mark(Json& messages, std::string_view mark) const;
  // The text with the mark in every spelling.
  std::string marked(std::string_view text, std::string_view mark) const;

 private:
  std::array<bool, 256> begins_{};  // By first byte: whether a spelling begins with it.
  std::map<std::string, std::vector<std::string>, std::less<>> by_begin_;  // By first two bytes.
};

}  // namespace fermata::api
