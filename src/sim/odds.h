// What one seed draws: the world of a random schedule, and how often what happens in it.
#pragma once

#include "base/random.h"
#include "sim/rig.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fermata::sim {

struct Memory {
  const char* name;
  engine::MemoryKind kind;
  Layout layout;
  bool deterministic = false;
};

// Every kind of memory in the layouts it has.
std::span<const Memory> memories();
std::optional<Memory> memory_from(std::string_view name);

struct Odds {
  Memory memory;
  RigSpec spec;  // Its faults stop after `faulty_ticks`.
  int requests = 0;
  int arrival_percent = 0;        // Of a tick: another request arrives.
  int cancel_percent = 0;         // Of a tick and client: it goes away.
  int slow_percent = 0;           // Of a tick and client: it does not read.
  int stalled_percent = 0;        // Of clients: they do not read until the faults stop.
  int hold_percent = 0;           // Of a tick: an operator parks somebody, or lets somebody back.
  int shared_prefix_percent = 0;  // Of requests: they go on from an earlier one.
  int group_percent = 0;          // Of requests: they want several choices.
  int change_percent = 0;         // Of a tick: an operator changes the geometry.
  int build_fault_percent = 0;    // Of contexts.
  int faulty_ticks = 0;           // From then on every client reads and the engine obeys.
};

// Equal seeds give equal odds. `memory`: none to have it drawn too.
Odds draw_odds(Random& random, const std::optional<Memory>& memory);

// Several lines, for people.
std::string describe(const Odds& odds);

// What a tick without work takes.
constexpr Micros idle_tick{1000};

// How long a parked request that reads may wait. See docs/design/simulator.md.
struct WaitBound {
  Micros rotate_after;
  Micros place;  // For each one that is resumed before it, and for itself.

  Micros of(std::int64_t resumed_before) const {
    return rotate_after + place * (resumed_before + 1);
  }
};
WaitBound wait_bound(const RigSpec& spec, const engine::EngineLimits& limits);

}  // namespace fermata::sim
