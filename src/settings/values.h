// Text into the members of Settings and back, as a row of the table says.
#pragma once

#include "settings/table.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::settings {

// "1", "true", "on", "enabled" and their opposites; empty for anything else.
std::optional<bool> truth_of(std::string_view text);

// Writes `text` into the member that `row` binds; lists that accumulate grow by one item. False
// when the text is not allowed; the member is then as before. REQUIRES: a row with a target that
// takes a value, or that binds a bool.
[[nodiscard]] bool set_value(const Row& row, std::string_view text, Settings& settings);

// Writes what a flag without a value means. REQUIRES: a row with a target that takes none.
void set_flag(const Row& row, bool off, Settings& settings);

// "\n", "\t", "\r", "\\", "\'" and "\"" become what they stand for; others stay as written.
std::string unescaped(std::string_view text);

// Empties a list. REQUIRES: a row that accumulates.
void clear_list(const Row& row, Settings& settings);

// Whether the member holds a value that set_value() could have written.
bool is_allowed(const Row& row, const Settings& settings);

// The member as text that set_value() reads; of a list that accumulates, the items in quotes.
// REQUIRES: a row with a target.
std::string value_text(const Row& row, const Settings& settings);

// "a whole number from 1 to 255, or -1": what a message or the documentation says is allowed.
std::string allowed_text(const Row& row);

// One line of the listing for /props.
struct SettingValue {
  std::string_view name;  // "ctx-size"
  std::string value;      // As value_text(); of a secret, whether there is one: "set" or "".
  bool is_default = true;
  Change change = Change::start;
};
// Every supported setting once, in the order of the table.
std::vector<SettingValue> list_values(const Settings& settings);

}  // namespace fermata::settings
