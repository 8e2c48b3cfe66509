// Pieces that the help and the documentation share.
#pragma once

#include "settings/table.h"

#include <string>
#include <string_view>
#include <vector>

namespace fermata::settings {

// The names that do something: of a setting that is always on, not those that turn it off.
std::vector<std::string_view> accepted_names(const Row& row);

// "0.80", "enabled", "same as --threads"; empty where there is nothing to say.
std::string default_words(const Row& row);

// The help of a row with its default in place.
std::string meaning(const Row& row);

// `text` with each `from` replaced.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

// The parts between spaces.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace fermata::settings
