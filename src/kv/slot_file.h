// llama-server's file of a slot, in memory: a header, the tokens, the cells as the library writes
// them. Pure.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fermata::kv {

enum class SlotFileFault : std::uint8_t {
  malformed,      // Cut, no such file, or of another version of the library.
  other_version,  // Of the tokens.
  has_media,
};

struct SlotFile {
  std::vector<TokenId> tokens;       // One at least.
  std::span<const std::byte> state;  // Of `bytes`.
};

// All before the cells.
std::vector<std::byte> slot_file_head(std::span<const TokenId> tokens);
Result<SlotFile, SlotFileFault> read_slot_file(std::span<const std::byte> bytes);

}  // namespace fermata::kv
