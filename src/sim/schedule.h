// One random schedule: the production scheduler, policy and kv on the fake engine, with clients
// that arrive, dawdle and leave, and an engine that fails, all from one seed. Checked while it runs
// and at its end; see docs/design/simulator.md.
#pragma once

#include "sim/odds.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fermata::sim {

// A fault of our own, to see that the checkers find it.
enum class Plant : std::uint8_t { none, lost_final, wrong_text, leaked_cell, failed_check };

struct ScheduleOptions {
  std::optional<Memory> memory;  // None: drawn.
  Plant plant = Plant::none;
};

struct Figures {
  std::int64_t requests = 0, cancelled = 0, failed = 0, ticks = 0;
  std::int64_t parks = 0, resumes = 0, recomputed = 0, no_room = 0, broken = 0;
  std::int64_t spilled = 0, unspilled = 0, spills_lost = 0;  // To what is slower than RAM.
  std::int64_t changes = 0, sleeps = 0;  // Of the geometry; of the whole server.
  std::int64_t fetched = 0;    // Requests that went on from a conversation out of the pool.
  double wait_of_bound = 0.0;  // The longest wait of a parked request, over its bound.

  void add(const Figures& other);
};

struct Outcome {
  std::vector<std::string> faults;  // Empty: everything held. The first few, one line each.
  Figures figures;
};

// Equal arguments give equal outcomes, on every machine. Keeps nothing; any thread. A failed check
// of the code under test ends the process.
Outcome play(std::uint64_t seed, const ScheduleOptions& options);

// What play() draws first, in words.
std::string describe_seed(std::uint64_t seed, const ScheduleOptions& options);

}  // namespace fermata::sim
