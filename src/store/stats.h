// Numbers of the store, in plain structs beside the code that counts. Thread-safe.
#pragma once

#include "metrics/counters.h"
#include "metrics/exposition.h"
#include "metrics/histogram.h"
#include "store/outcome.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace fermata::store {

// One for each outcome.
struct OutcomeCounters {
  std::array<Counter, outcomes> counters;
  Counter& operator[](Outcome outcome) { return counters[static_cast<std::size_t>(outcome)]; }
  std::uint64_t operator[](Outcome outcome) const {
    return counters[static_cast<std::size_t>(outcome)].value();
  }
};

// Of one tier of blocks.
struct TierStats {
  Gauge bytes, blocks;  // What it holds, as far as it knows.
  Counter bytes_read, bytes_written;
  OutcomeCounters puts, gets;  // gets[done]: hits, gets[missing]: misses, the others: failures.
  Counter erased;
  TimeHistogram put_time, get_time;
};

enum class Eviction : std::uint8_t {
  bytes,     // The budget of bytes.
  count,     // The most pages.
  age,       // Not used for longer than the TTL.
  replaced,  // A newer page of the same name.
  erased,    // Asked for.
  damaged,   // A block or its manifest was damaged or gone.
};
inline constexpr std::size_t evictions = 6;
std::string_view name_of(Eviction why);

// Of the folder of pages.
struct StoreStats {
  Gauge pages, blocks, bytes, pinned;
  OutcomeCounters saves, loads;
  Counter lookups, lookup_hits, tokens_found;
  std::array<Counter, evictions> evicted;
  Counter bytes_written;  // Blocks, manifests and journal.
  Counter quarantined;    // Files that were not loaded and lie aside.
  Counter collected;      // Files that nothing refers to any more, removed.
};

// As fermata_store_*; `tier` is a label.
void write(Exposition& out, const TierStats& stats, std::string_view tier);
void write(Exposition& out, const StoreStats& stats);

}  // namespace fermata::store
