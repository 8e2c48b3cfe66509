// Decides, never acts. Equal View gives an equal Plan on every machine: no clock, no random source,
// no log, no lock, no I/O. The simulator and the server run this same code.
#pragma once

#include "base/types.h"
#include "policy/view.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fermata::policy {

struct Park {
  std::size_t running;  // Index into View::running.
  ParkMode mode;
  ParkReason reason = ParkReason::pressure;
};

struct Resume {
  std::size_t parked;  // Index into View::parked.
  Seat seat;
};

// Seats a waiting request on `seat`, starting from `reuse` tokens: the seat's own, `source`'s, or
// the shelf's.
struct Admission {
  RequestId id;
  Seat seat;
  std::optional<Seat> source;
  Tokens reuse;
  Tokens fetched{0};  // Cells that the shelf's tokens take for a moment; 0: not from there.
};

// Copies the next block of a running sequence, so that a park of it will be short.
struct Mirror {
  std::size_t running;  // Index into View::running.
};

// Copies the next block of an idle seat, so that dropping it will be short.
struct Copy {
  Seat seat;
};

struct Run {
  std::size_t running;  // Index into View::running.
  Tokens rows;          // 1 for a decode row.
};

// Applied in this order. Who is resumed or admitted first runs in the next tick.
struct Plan {
  std::vector<Seat> evict;
  std::vector<Park> park;
  std::vector<std::size_t> fail;  // Indices into View::running: no cells, and no parking.
  std::vector<Resume> resume;
  std::vector<std::size_t> fetch;  // Indices into View::parked: to be brought back to RAM.
  std::vector<Admission> admit;
  std::vector<Mirror> mirror;
  std::vector<Copy> copy;
  std::vector<Run> run;

  void clear() {
    evict.clear();
    park.clear();
    fail.clear();
    resume.clear();
    fetch.clear();
    admit.clear();
    mirror.clear();
    copy.clear();
    run.clear();
  }
};

// Admits in order of priority and arrival, and only what fits in the worst case, so that nothing
// that was started ever lacks a cell. Idle seats are evicted, longest unused first, as far as that
// takes. Then rows: every sequence that decodes, then prompts in order of arrival, as many rows as
// the batch and the step's time budget allow.
// `plan` is cleared first; reusing it saves allocation.
void plan_worst_case(const View& view, Plan& plan);

// Admits more than fits in the worst case and parks when cells run out. In this order: forced
// parks; after a step that found no cells, idle seats go and one more sequence is parked; parks
// until the next step's rows fit (idle seats are evicted first); resumes in the order of parking,
// then admissions, by priority and nobody passes; a place is made for who has waited too long or
// has a higher priority; rows; and, when cells are short, mirrors of who would be parked next.
// Whoever comes in must find room for itself and for a quantum of everybody's tokens, so that it
// does not have to leave at once. With one sequence alone in the pool that margin is waived.
// Those of a group leave and come back together, while anybody else is in the pool. Whoever is next
// and not in RAM is fetched once there is a place for it, or soon will be; the others wait for it.
void plan_preempting(const View& view, Plan& plan);

// Why the plan does not respect the view: what the scheduler checks before it applies one.
std::optional<std::string> find_fault(const View& view, const Plan& plan);

}  // namespace fermata::policy
