// What a decision sees: facts of one tick, measured or counted, and nothing that can be changed.
#pragma once

#include "base/types.h"
#include "core/geometry.h"
#include "policy/park.h"

#include <optional>
#include <span>
#include <string_view>

namespace fermata::policy {

enum class SeatUse : std::uint8_t { empty, idle, busy };
enum class Phase : std::uint8_t { prefill, decode };  // prefill: also a replay after a park.

// Who is parked first when cells run out.
enum class Victim : std::uint8_t {
  smallest,
  youngest,
  oldest,
  largest,
  cost,  // The least time to take out and bring back, for each cell that this frees.
};
std::string_view name(Victim victim);
std::optional<Victim> victim_from(std::string_view name);

struct PreemptOptions {
  bool enabled = true;  // false: who finds no cells fails, for comparison.
  Victim victim = Victim::smallest;
  // What everybody is left to generate between two parks, and what is kept free for it when a
  // request is admitted or resumed: it bounds how often sequences move.
  Tokens quantum{64};
  Micros rotate_after{2'000'000};  // Somebody parked for so long gets the place of another.
  bool planner = true;  // Test: false: nobody is parked for cells before a step found none.
  Tokens every{0};      // Test: park each sequence after so many tokens; 0: never.
};

struct SeatView {
  Seat seat;
  SeatUse use = SeatUse::empty;
  Tokens length;
  Tokens exclusive;  // Cells that only this seat holds: what evicting it frees for certain.
  Micros last_used;
  Tokens uncopied{0};    // Idle: what would have to be copied before it is dropped, in blocks.
  bool is_kept = false;  // Idle: dropped, it is kept in RAM.
  Tokens rows_since{0};  // Idle: rows that others have computed since.
};

// What one seat could spare for one waiting request; see kv::PrefixMatch.
struct PrefixView {
  Tokens own;
  Tokens shareable;
};

// What conversations out of the pool could spare for one waiting request; see kv::Offer.
struct ShelfView {
  Tokens reuse;
  Tokens cells;
};

struct WaitingView {
  RequestId id;
  Tokens prompt;
  Tokens need;           // Cells in the worst case, 0 where tokens take none.
  Tokens remaining{-1};  // Tokens it may generate; -1: no limit.
  std::int32_t priority = 0;
  std::optional<Seat> seat;              // Only this one will do.
  std::span<const PrefixView> prefixes;  // By seat; empty: not looked at in this tick.
  bool held = false;                     // By an operator: not to be admitted.
  GroupId group{};                       // Choices of one request; they begin alike.
  // Another of its group computes that, or the store brings its beginning: not to be admitted yet.
  bool awaits_prompt = false;
  ShelfView shelf{};
};

struct RunningView {
  RequestId id;
  Seat seat;
  Phase phase = Phase::prefill;
  Tokens rows_left{0};   // Rows of the prompt or replay not computed yet; 0 in Phase::decode.
  bool blocked = false;  // Its client does not read: no room for another event.
  Micros blocked_for{0};
  Tokens remaining{-1};   // Tokens it may still generate; -1: no limit.
  Tokens since_start{0};  // Generated since it was admitted or last resumed.
  std::int32_t parks = 0;
  bool replaying = false;
  std::int32_t priority = 0;
  Tokens mirrored{0};     // Of its cells, from the first on: their bytes are in RAM as well.
  bool held = false;      // By an operator: to be parked.
  Tokens prompt_left{0};  // Of rows_left: of the prompt; what comes after it was a reply.
  GroupId group{};
  Tokens shared{0};    // In a group: of its cells, those that the first of it that runs holds too.
  Tokens together{0};  // In a group: cells that those of it that run hold and nobody else.
};

struct ParkedView {
  RequestId id;
  Tokens cells;      // What it held, and holds again once it is back.
  Tokens rows_left;  // Of its prompt, beyond those.
  ParkMode mode = ParkMode::swap;
  std::optional<Seat> seat;  // Only this one will do.
  Tokens remaining{-1};      // -1: no limit.
  Micros parked_at;
  bool blocked = false;
  std::int32_t priority = 0;
  bool held = false;  // By an operator: not to be resumed.
  GroupId group{};
  Tokens shared{0};   // In a group: of `cells`, those that come back as the first parked one's.
  Tokens need{0};     // Without overcommit: cells in the worst case.
  bool away = false;  // Its bytes are out of RAM: to be fetched before it is resumed.
};

// Measured on this machine; 0: not known yet.
struct Rates {
  Micros decode_step;     // One step of the present number of decode rows and no prefill.
  Micros prefill_per_1k;  // A thousand more rows of prefill in a step.
  Micros move_per_mib{};  // Of a sequence's bytes, one way.
  // No step has decoded about so many rows alone: the next one should, for prompts to be cut well.
  bool decode_unknown = false;
};

// Built once per tick, valid during the call. `waiting` is in order of priority, then arrival;
// `running` in order of admission; `parked` in order of parking; `seats` in order of number.
struct View {
  Micros now;
  Layout layout = Layout::pooled;
  Tokens cells;  // All cells of the pool.
  bool cells_per_token = true;
  bool overcommit = false;   // Admissions need not fit in the worst case.
  Tokens cells_unpromised;   // Neither held nor promised; idle seats count as held.
  Tokens cells_free;         // Not held by anybody.
  Tokens cells_busy;         // Held by busy seats.
  Tokens cells_outstanding;  // Promised to busy seats and not held yet.
  std::int32_t no_room = 0;  // Steps in a row that found no cells.
  Tokens batch_max;
  // Fixed shapes: a prompt is computed in pieces that end at its end and at multiples of so many
  // rows from position 0, each in one step; a reply is computed again row by row. 0: as it comes.
  Tokens chunk{0};
  Micros step_budget;  // Of a step in which anybody decodes; 0: see prefill_allowance().
  Rates rates;
  PreemptOptions preempt;
  bool can_swap = false;                 // The engine can move this memory's cells.
  Bytes bytes_per_sequence{0};           // Of a swapped sequence, beside its tokens.
  Bytes bytes_per_token{0};              // Of a swapped sequence.
  std::optional<Bytes> ram_left;         // For more swapped bytes, mirrors dropped; none: no limit.
  std::optional<Bytes> mirror_ram_left;  // For more mirrors; none: no limit.
  Bytes slower_left{0};  // For swapped bytes on the way to what is slower than RAM; 0: nothing is.
  Tokens block = block_tokens;
  std::int32_t blocks_max = 0;  // Blocks that may be mirrored in this tick.
  std::int32_t copies_max = 0;  // Blocks of idle seats that may be copied in this tick.
  // Copied idle conversations may leave while others compute: cells are cheap to bring back.
  bool clears_idle = false;
  std::span<const SeatView> seats;
  std::span<const WaitingView> waiting;
  std::span<const RunningView> running;
  std::span<const ParkedView> parked;
};

}  // namespace fermata::policy
