// Decides, never acts. Equal View gives an equal Plan on every machine: no clock, no random source,
// no log, no lock, no I/O. The simulator and the server run this same code.
#pragma once

#include "base/types.h"
#include "core/geometry.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fermata::policy {

enum class SeatUse : std::uint8_t { empty, idle, busy };
enum class Phase : std::uint8_t { prefill, decode };

struct SeatView {
  Seat seat;
  SeatUse use = SeatUse::empty;
  Tokens length;
  Tokens exclusive;  // Cells that only this seat holds: what evicting it frees for certain.
  Micros last_used;
};

// What one seat could spare for one waiting request; see kv::PrefixMatch.
struct PrefixView {
  Tokens own;
  Tokens shareable;
};

struct WaitingView {
  RequestId id;
  Tokens prompt;
  Tokens need;                           // Cells in the worst case, 0 where tokens take none.
  std::optional<Seat> seat;              // Only this one will do.
  std::span<const PrefixView> prefixes;  // By seat; empty: not looked at in this tick.
};

struct RunningView {
  RequestId id;
  Seat seat;
  Phase phase = Phase::prefill;
  Tokens prompt_left;    // Rows of the prompt that are not computed yet; 0 in Phase::decode.
  bool blocked = false;  // Its client does not read: no room for another event.
};

// Measured on this machine; 0: not known yet.
struct Rates {
  Micros decode_step;     // One step of the present number of decode rows and no prefill.
  Micros prefill_per_1k;  // A thousand more rows of prefill in a step.
};

// Built once per tick, valid during the call. `waiting` is in order of priority, then arrival;
// `running` in order of arrival; `seats` in order of number.
struct View {
  Micros now;
  Layout layout = Layout::pooled;
  Tokens cells;              // All cells of the pool.
  Tokens cells_unpromised;   // Neither held nor promised; idle seats count as held.
  Tokens cells_busy;         // Held by busy seats.
  Tokens cells_outstanding;  // Promised to busy seats and not held yet.
  Tokens batch_max;
  Micros step_budget;  // Of a step in which anybody decodes; 0: two decode steps.
  Rates rates;
  std::span<const SeatView> seats;
  std::span<const WaitingView> waiting;
  std::span<const RunningView> running;
};

// Seats a waiting request on `seat`, starting from `reuse` tokens: the seat's own, or `source`'s.
struct Admission {
  RequestId id;
  Seat seat;
  std::optional<Seat> source;
  Tokens reuse;
};

struct Run {
  std::size_t running;  // Index into View::running.
  Tokens rows;          // 1 for a decode row.
};

// Applied in this order. Admitted requests first run in the next tick.
struct Plan {
  std::vector<Seat> evict;
  std::vector<Admission> admit;
  std::vector<Run> run;

  void clear() {
    evict.clear();
    admit.clear();
    run.clear();
  }
};

// Admits in order of priority and arrival, and only what fits in the worst case, so that nothing
// that was started ever lacks a cell. Idle seats are evicted, longest unused first, as far as that
// takes. Then rows: every sequence that decodes, then prompts in order of arrival, as many rows as
// the batch and the step's time budget allow.
// `plan` is cleared first; reusing it saves allocation.
void plan_worst_case(const View& view, Plan& plan);

// Why the plan does not respect the view: what the scheduler checks before it applies one.
std::optional<std::string> find_fault(const View& view, const Plan& plan);

}  // namespace fermata::policy
