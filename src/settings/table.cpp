#include "settings/table.h"

#include <functional>
#include <map>

namespace fermata::settings {
namespace {

struct Index {
  std::vector<const Row*> rows;
  std::map<std::string_view, NamedRow, std::less<>> by_name;
};

void add_name(Index& index, std::string_view name, NamedRow row) {
  const bool is_new = index.by_name.emplace(name, row).second;
  FERMATA_CHECK(is_new, "two settings with one name");
}

Index make_index() {
  Index index;
  for (const std::span<const Row> part :
       {engine_rows(), sampling_rows(), server_rows(), security_rows(), unsupported_rows()}) {
    for (const Row& row : part) {
      index.rows.push_back(&row);
      for (const std::string_view name : row.names) add_name(index, name, {&row, false});
      for (const std::string_view name : row.off_names) add_name(index, name, {&row, true});
    }
  }
  return index;
}

const Index& the_index() {
  static const Index index = make_index();
  return index;
}

}  // namespace

std::span<const Row* const> table() { return the_index().rows; }

NamedRow find_row(std::string_view name) {
  const auto& by_name = the_index().by_name;
  const auto found = by_name.find(name);
  return found == by_name.end() ? NamedRow{} : found->second;
}

const Row& owner(const Row& row) {
  if (row.alias_of.empty()) return row;
  const Row* named = find_row(row.alias_of).row;
  FERMATA_CHECK(named != nullptr, "an alias of no setting");
  return *named;
}

std::string_view title(const Row& row) {
  if (row.names.empty()) return row.env;
  std::string_view longest = row.names.back();
  for (const std::string_view name : row.names) {
    if (name.size() > longest.size()) longest = name;
  }
  return longest;
}

std::string off_variable(const Row& row) {
  constexpr std::string_view prefix = "LLAMA_ARG_";
  if (row.off_names.empty() || !row.env.starts_with(prefix)) return "";
  return "LLAMA_ARG_NO_" + std::string(row.env.substr(prefix.size()));
}

}  // namespace fermata::settings
