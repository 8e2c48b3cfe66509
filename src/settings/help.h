// The table of settings as text for people, and for tools that look for features in --help.
#pragma once

#include <string>

namespace fermata::settings {

inline constexpr int help_columns = 110;  // llama-server's: 40 for the names, 70 for the text.

// In llama-server's layout: sections, a column of names, wrapped text, "(default: ...)" and
// "(env: ...)". Only what is supported; a name in here means that the feature works.
// REQUIRES: columns >= 60. Ends with a line break.
std::string help_text(int columns = help_columns);

// docs/settings.md, whole.
std::string settings_markdown();

}  // namespace fermata::settings
