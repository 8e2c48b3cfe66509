#include "settings/help.h"

#include "base/check.h"
#include "settings/describe.h"
#include "settings/table.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::settings {
namespace {

constexpr std::size_t names_columns = 40;
constexpr std::size_t first_name_columns = 7;  // "-c,    --ctx-size N"
constexpr int columns_min = 60;

// Lines longer than `columns` are filled anew word by word; shorter ones keep their shape.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.size() <= columns) {
      lines.emplace_back(line);
      continue;
    }
    std::string filled;
    for (const std::string_view word : words_of(line)) {
      if (!filled.empty() && filled.size() + 1 + word.size() > columns) {
        lines.push_back(std::move(filled));
        filled.clear();
      }
      if (!filled.empty()) filled += ' ';
      filled += word;
    }
    lines.push_back(std::move(filled));
  }
  return lines;
}

std::string names_column(const Row& row) {
  const std::vector<std::string_view> names = accepted_names(row);
  std::string out(names.front());
  if (names.size() > 1) {
    out += ", ";
    out.resize(std::max(out.size(), first_name_columns), ' ');
  }
  for (std::size_t i = 1; i < names.size(); ++i) {
    if (i > 1) out += ", ";
    out += names[i];
  }
  if (!row.placeholder.empty()) out += " " + std::string(row.placeholder);
  return out;
}

std::string entry(const Row& row, std::size_t columns) {
  std::string text = meaning(row);
  if (!row.env.empty()) text += "\n(env: " + std::string(row.env) + ")";
  std::string out = names_column(row);
  const std::string indent(names_columns, ' ');
  if (out.size() > names_columns - 3) {
    out += "\n" + indent;
  } else {
    out.resize(names_columns, ' ');
  }
  bool is_first = true;
  for (const std::string& line : wrapped(text, columns - names_columns)) {
    out += (is_first ? "" : indent) + line + "\n";
    is_first = false;
  }
  return out;
}

enum class Section : unsigned char { common, sampling, example_specific, fermata };

Section section_of(const Row& row) {
  if (row.env.starts_with("FERMATA_")) return Section::fermata;
  switch (row.group) {
    case Group::sampling:
      return Section::sampling;
    case Group::chat:
    case Group::server:
    case Group::security:
      return Section::example_specific;
    default:
      return Section::common;
  }
}

}  // namespace

std::string help_text(int columns) {
  FERMATA_CHECK(columns >= columns_min, "help in too few columns");
  struct Titled {
    Section section;
    std::string_view title;
  };
  constexpr Titled sections[] = {{Section::common, "common params"},
                                 {Section::sampling, "sampling params"},
                                 {Section::example_specific, "example-specific params"},
                                 {Section::fermata, "fermata params"}};
  std::string out;
  for (const Titled& section : sections) {
    if (!out.empty()) out += "\n\n";
    out += "----- " + std::string(section.title) + " -----\n\n";
    for (const Row* row : table()) {
      const bool works = row->support == Support::supported || row->support == Support::fixed;
      if (works && section_of(*row) == section.section) {
        out += entry(*row, static_cast<std::size_t>(columns));
      }
    }
  }
  return out;
}

}  // namespace fermata::settings
