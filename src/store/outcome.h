// How an operation of the store or of one of its tiers ended. One closed list for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fermata::store {

enum class Outcome : std::uint8_t {
  done,
  full,          // No room under a budget, nothing more to evict, or the disk is full.
  missing,       // No such page or block (any more).
  damaged,       // The bytes are not those that were stored. They are out of the way now.
  foreign,       // Of another model, KV type or format, or no file of ours. Never loaded.
  busy,          // Too much is under way: later.
  stopping,      // The store is closing; not done.
  refused_rate,  // The bytes written within the last hour are at their bound.
  failed,        // The system refused a read or a write; the log says which and why.
  taken,         // Another page has that name.
};
inline constexpr std::size_t outcomes = 10;

std::string_view name_of(Outcome outcome);

}  // namespace fermata::store
