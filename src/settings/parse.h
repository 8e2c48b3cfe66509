// From the command line and the environment to valid settings.
//
// The flags have a parser of our own because llama-server's names include multi-letter options with
// one dash (-np, -ctk, -kvu), which CLI11 2.1 reads as clusters of one-letter ones.
#pragma once

#include "base/result.h"
#include "settings/settings.h"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace fermata::settings {

// The environment variables by name; passed in, so that tests own them.
using Environment = std::map<std::string, std::string, std::less<>>;

// From a block as the C library's `environ`: strings "NAME=value", closed by a null pointer.
Environment environment_of(const char* const* block);

enum class FaultKind : std::uint8_t {
  unknown_argument,     // No setting has this name.
  unexpected_argument,  // A word that is neither a flag nor the value of one.
  missing_value,        // A setting that takes a value stands without one.
  bad_value,            // Not a number, out of range, or none of the choices.
  not_supported,        // Known, but not yet (or no longer) possible.
  conflict,             // Each value is fine, together they are not.
};

struct SettingsFault {
  FaultKind kind = FaultKind::unknown_argument;
  std::string name;     // The flag or variable as it was written; empty for a conflict.
  std::string message;  // One line without control characters: what, why, the mend.
};

// `args` are those after the subcommand. An argument beats its environment variable; of a repeated
// argument the last one counts, but for lists that grow with each use. Both are warnings of the
// result, as are unknown LLAMA_ARG_* variables, likely slips in FERMATA_* ones, and deprecated
// flags. An empty variable counts as not set. Of -b and -ub, the one that nobody gave gives way.
// --help and --version end the reading: the result then says that and nothing else.
Result<Settings, SettingsFault> parse_settings(std::span<const std::string_view> args,
                                               const Environment& environment);

}  // namespace fermata::settings
