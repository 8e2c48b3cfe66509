#include "api/control_texts.h"

#include <algorithm>

namespace fermata::api {
namespace {

// Where a spelling can be cut: behind its first character. Its length: nowhere.
std::size_t first_inside(std::string_view spelling) {
  std::size_t at = 1;
  while (at < spelling.size() && (static_cast<unsigned char>(spelling[at]) & 0xC0U) == 0x80U) ++at;
  return at;
}

}  // namespace

CutText cut_at(std::string_view text, std::string_view mark) {
  CutText out;
  for (std::size_t begin = 0;;) {
    const std::size_t at = text.find(mark, begin);
    out.text += text.substr(begin, at - begin);
    if (at == std::string_view::npos) return out;
    out.cuts.push_back(out.text.size());
    begin = at + mark.size();
  }
}

std::vector<TokenId> tokenize(const CutText& text, const engine::Vocabulary& vocabulary) {
  const std::string_view whole = text.text;
  if (text.cuts.empty()) return vocabulary.tokenize(whole, true, true);
  std::vector<TokenId> out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.cuts.size(); ++i) {
    const std::size_t end = i < text.cuts.size() ? text.cuts[i] : whole.size();
    const auto part = vocabulary.tokenize(whole.substr(begin, end - begin), i == 0, true);
    out.insert(out.end(), part.begin(), part.end());
    begin = end;
  }
  return out;
}

ControlTexts::ControlTexts(const engine::Vocabulary& vocabulary) {
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const TokenId token{id};
    if (!vocabulary.piece(token).empty()) continue;
    const std::string_view spelling = vocabulary.piece_with_special(token);
    if (spelling.size() < 2 || first_inside(spelling) == spelling.size()) continue;
    begins_[static_cast<unsigned char>(spelling.front())] = true;
    by_begin_[std::string(spelling.substr(0, 2))].emplace_back(spelling);
  }
}

std::string ControlTexts::marked(std::string_view text, std::string_view mark) const {
  std::vector<std::size_t> cuts;
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    if (!begins_[static_cast<unsigned char>(text[at])]) continue;
    const auto found = by_begin_.find(text.substr(at, 2));
    if (found == by_begin_.end()) continue;
    const std::string_view rest = text.substr(at);
    const auto spells = [&](const std::string& spelling) { return rest.starts_with(spelling); };
    const bool any = std::any_of(found->second.begin(), found->second.end(), spells);
    if (any) cuts.push_back(at + first_inside(rest));
  }
  std::string out;
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    out += text.substr(begin, cut - begin);
    out += mark;
    begin = cut;
  }
  out += text.substr(begin);
  return out;
}

void ControlTexts::mark(Json& messages, std::string_view mark) const {
  const auto change = [&](Json& text) { text = marked(text.get<std::string>(), mark); };
  for (Json& message : messages) {
    if (message["role"] == "assistant") continue;
    Json& content = message["content"];
    if (content.is_string()) change(content);
    if (!content.is_array()) continue;
    for (Json& part : content) {
      if (part.contains("text") && part["text"].is_string()) change(part["text"]);
    }
  }
}

}  // namespace fermata::api
