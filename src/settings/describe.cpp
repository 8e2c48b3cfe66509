#include "settings/describe.h"

#include "settings/values.h"

#include <spdlog/fmt/fmt.h>

namespace fermata::settings {
namespace {

constexpr std::string_view default_mark = "{default}";

std::string default_clause(const Row& row) {
  if (row.support == Support::fixed) return "(always on)";
  const std::string words = default_words(row);
  if (words.empty()) return "";
  const std::string note = row.note.empty() ? "" : fmt::format(", {}", row.note);
  return fmt::format("(default: {}{})", words, note);
}

}  // namespace

std::vector<std::string_view> accepted_names(const Row& row) {
  std::vector<std::string_view> names(row.names.begin(), row.names.end());
  if (row.support != Support::fixed) {
    names.insert(names.end(), row.off_names.begin(), row.off_names.end());
  }
  return names;
}

std::string default_words(const Row& row) {
  static const Settings defaults;
  const bool is_command = row.group == Group::general;
  const bool is_alias_flag = !row.alias_of.empty() && row.placeholder.empty();
  if (is_command || is_alias_flag) return "";
  if (!row.default_text.empty()) return std::string(row.default_text);
  if (std::holds_alternative<std::monostate>(row.target)) return "";
  if (const auto* flag = std::get_if<Member<bool>>(&row.target)) {
    return flag->in(defaults) ? "enabled" : "disabled";
  }
  if (const auto* number = std::get_if<Member<float>>(&row.target)) {
    return fmt::format("{:.2f}", number->in(defaults));
  }
  return value_text(row, defaults);
}

std::string meaning(const Row& row) {
  const std::string clause = default_clause(row);
  if (row.help.find(default_mark) != std::string_view::npos) {
    return replaced(row.help, default_mark, clause);
  }
  return clause.empty() ? std::string(row.help) : fmt::format("{} {}", row.help, clause);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (auto at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
  }
  return out += text;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const auto start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    words.push_back(line.substr(0, line.find(' ')));
    line.remove_prefix(words.back().size());
  }
}

}  // namespace fermata::settings
