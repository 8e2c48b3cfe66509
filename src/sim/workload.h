// What arrives at a server, and the machine that it runs on.
#pragma once

#include "sim/rig.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fermata::sim {

struct Arrival {
  Micros at;
  Ask ask;
};

struct Workload {
  const char* name;
  const char* what;
  std::int32_t seats;
  // In order of time; another seed is another day of the same kind. Replies have a length of their
  // own; max_tokens is twice that.
  std::vector<Arrival> (*arrivals)(std::uint64_t seed);
};

std::span<const Workload> workloads();

// How tight it is there.
struct Tightness {
  int over = 2;          // What a full house needs at its end, over the pool; a request alone fits.
  int ram_percent = 50;  // RAM for parked bytes, over what the pool takes; -1: no limit.
};
// A machine of 5 ms a step, 1 ms a decode row, 0.25 ms a row of a prompt, that copies 96 KiB a
// token at 5 GB/s.
RigSpec machine_for(const Workload& workload, const std::vector<Arrival>& arrivals,
                    const Tightness& tightness);

struct RunFigures {
  Micros makespan;
  Micros longest_start;  // From a request to its first token.
  Micros longest_gap;    // Between two tokens of a reply: the longest park.
  Micros p99_gap;
  std::int64_t parks = 0, recomputed = 0;
};

// Every reply must be complete (checked).
RunFigures run(const RigSpec& spec, const std::vector<Arrival>& arrivals);

}  // namespace fermata::sim
