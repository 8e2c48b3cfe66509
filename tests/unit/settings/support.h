// What the tests of settings share.
#pragma once

#include "settings/parse.h"
#include "settings/table.h"

#include <string>
#include <string_view>
#include <vector>

namespace fermata::settings {

inline Result<Settings, SettingsFault> parse(const std::vector<std::string>& words,
                                             const Environment& environment = {}) {
  const std::vector<std::string_view> args(words.begin(), words.end());
  return parse_settings(args, environment);
}

// The message of a fault; empty when there is none.
inline std::string fault_of(const std::vector<std::string>& words,
                            const Environment& environment = {}) {
  const auto result = parse(words, environment);
  return result.ok() ? "" : result.error().message;
}

// Every warning in one text.
inline std::string warnings_of(const std::vector<std::string>& words,
                               const Environment& environment = {}) {
  const auto result = parse(words, environment);
  std::string out;
  if (!result.ok()) return "fault: " + result.error().message;
  for (const std::string& warning : result.value().invocation.warnings) out += warning + "\n";
  return out;
}

inline bool is_supported(const Row& row) { return row.support == Support::supported; }

}  // namespace fermata::settings
