// How much memory this process can still get.
#pragma once

#include "base/types.h"

#include <optional>

namespace fermata::engine::llama {

// The smaller of what the machine has and what the process's control group is allowed; file cache
// that can be dropped counts as available. Empty where the system does not tell (not Linux).
std::optional<Bytes> available_memory();

}  // namespace fermata::engine::llama
