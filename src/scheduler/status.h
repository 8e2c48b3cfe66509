// What the scheduler shows to others: counters, and a snapshot of seats that HTTP threads copy.
#pragma once

#include "base/types.h"
#include "core/geometry.h"
#include "core/request.h"
#include "engine/engine.h"
#include "metrics/counters.h"
#include "metrics/histogram.h"
#include "policy/policy.h"
#include "reconfigure/change.h"
#include "scheduler/sleeping.h"

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::scheduler {

// Read by /metrics while the scheduler counts.
struct SchedulerStats {
  Counter prompt_tokens;         // Computed.
  Counter prompt_tokens_cached;  // Taken over from resident cells.
  Counter prompt_us;
  Counter predicted_tokens;
  Counter predicted_us;
  Counter steps;
  Counter steps_us;
  Counter tick_us;              // Of ticks, without the engine's step.
  Counter busy_seats_in_steps;  // Sum over steps.
  Counter no_room_steps;        // The engine answered no_room though the ledger said it fits.
  Counter broken_steps;
  Counter requests_accepted, requests_refused_full;
  Counter requests_finished, requests_cancelled, requests_failed;
  Counter seats_evicted;
  Counter context_shifts;
  Counter embedded_tokens;
  Counter parks_swap, parks_recompute, resumes, recomputed_tokens;
  Counter blocks_mirrored;
  Counter spilled, unspilled, spills_lost;  // Parked ones: out of RAM, back in it, not to be had.
  Gauge passing_bytes, spilled_bytes;       // On the way there and back; there.
  Counter changes, changes_failed;          // Of the geometry; refused or rolled back.
  TimeHistogram change_pause;
  Counter sleeps, wakes;
  TimeHistogram wake_time;  // From the first who needs the context to its being there.
  Gauge slept_off;          // Bytes that left memory with the last step into sleep.
  std::array<Counter, policy::park_reasons> swaps_by_reason, recomputes_by_reason;
  TimeHistogram swap_out;     // Copying the cells of one park to RAM.
  TimeHistogram swap_in;      // Copying them back.
  TimeHistogram parked_time;  // Of who came back, from the park to the resume.
  TimeHistogram queue_time;   // Of who was admitted.
  Gauge parked, parked_bytes, mirrored_bytes;
  Gauge cached_conversations, cached_bytes;  // Out of the pool, that nobody computes.
  Gauge cache_stored, cache_hits, cache_superseded, cache_evicted;  // Of those, since the start.
  Counter cache_tokens;    // Of prompts, that came from them.
  TimeHistogram cache_in;  // Bringing one back.
  Gauge held;              // Parked or queued, by an operator.
  Gauge tokens_max;        // The longest sequence so far.
};

struct SeatStatus {
  Seat seat;
  bool is_processing = false;
  std::shared_ptr<const Request> request;  // Of the present or, idle, the last sequence.
  Tokens resident;                         // Cells it holds.
  Tokens prompt, prompt_processed, prompt_cached;
  Tokens predicted, remaining;  // remaining -1: no limit.
  std::int32_t swaps = 0, recomputes = 0;
  bool has_new_line = false;  // In its text so far.
  std::string text;           // So far, where texts are shown.
};

struct ParkedStatus {
  std::shared_ptr<const Request> request;
  Tokens cells, predicted, remaining;
  std::int32_t swaps = 0, recomputes = 0;
  bool is_swapped = false;  // The last park kept its bytes.
  bool is_held = false;     // By an operator.
  bool is_queued = false;   // It was never in the pool: held while it waited.
  bool has_new_line = false;
  std::string text;  // As above.
};

struct Status {
  Geometry geometry;
  engine::EngineLimits limits;
  std::vector<SeatStatus> seats;     // By number.
  std::vector<ParkedStatus> parked;  // In order of parking; then the held ones of the queue.
  std::int64_t version = 1;          // Of the geometry.
  std::optional<reconfigure::Receipt> last_change;
  bool is_changing = false;
  std::string_view change_stage = "none";  // "building", "moving".
  bool is_absent = false;                  // There is no engine.
  Depth depth = Depth::awake;
  std::int64_t n_processing = 0;
  std::int64_t n_waiting = 0;
  Tokens cells_used;
};

// One writer (the scheduler thread), any number of readers.
class StatusBoard {
 public:
  Status read() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  engine::EngineLimits limits() const {
    const std::lock_guard lock(mutex_);
    return status_.limits;
  }
  // `change` edits the status in place, under the lock; it must be quick.
  template <class Change>
  void update(Change change) {
    const std::lock_guard lock(mutex_);
    change(status_);
  }

 private:
  mutable std::mutex mutex_;
  Status status_;
};

}  // namespace fermata::scheduler
