// Small files that settings name.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace fermata::app {

// All of a file that `flag` names. Empty, too large and unreadable ones are errors: one line with
// the mend.
Result<std::string, std::string> read_text(std::string_view flag, const std::string& path);

// The keys of --api-key-file: one a line, spaces around it and empty lines do not count.
Result<std::vector<std::string>, std::string> read_keys(const std::string& path);

}  // namespace fermata::app
