// A change of geometry: what is asked, what is decided, what became of it. Deciding is pure.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "core/geometry.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::reconfigure {

// beside: the new context is built while the old one serves. in_place: the old one is freed first.
enum class Path : std::uint8_t { beside, in_place };
std::string_view name(Path path);

// What an operator asks for. None: as it is.
struct Change {
  std::optional<Tokens> n_ctx = {};
  std::optional<std::int32_t> n_parallel = {};
  std::optional<KvType> cache_type_k = {}, cache_type_v = {};
  std::optional<Layout> layout = {};
  bool force = false;    // Conversations may be computed again.
  bool dry_run = false;  // Only decide.
  std::string reason = {};
};

Geometry changed(const Geometry& now, const Change& change);

// The most tokens that one sequence can hold there; the library may round it up.
Tokens window_of(const Geometry& geometry);

// A request that is under way.
struct Request {
  RequestId id;
  std::optional<Seat> seat;
  Tokens least;  // The smallest window in which its reply ends as it would have.
};

// What a geometry takes.
struct Cost {
  Bytes needed{0};                 // Of the new context.
  Bytes freed{0};                  // By the old one, once it is gone.
  std::optional<Bytes> available;  // Now; none: the system does not tell.
};

struct Situation {
  Geometry now;
  bool flash_attention = true;
  bool deterministic = false;
  Tokens chunk{0};    // Then prompts are computed in pieces of so many tokens.
  bool moves = true;  // The memory's states can be copied to another context.
  std::span<const Request> requests;
  Cost cost;
  std::optional<Path> forced_path;  // A test's.
};

enum class RefusalKind : std::uint8_t {
  nonsense,   // No context has this shape.
  too_small,  // Requests are under way that would not end as they would have.
  not_exact,  // Conversations would be computed again, and that was not allowed.
  no_memory,
  no_parking,  // Requests would have to wait out of the pool, and that is off.
};

struct Refusal {
  RefusalKind kind = RefusalKind::nonsense;
  std::string message;                   // What, why, and the mend.
  std::vector<RequestId> requests = {};  // Because of whom.
};

struct Plan {
  Geometry to;
  Path path = Path::beside;
  bool keeps_cells = true;  // False: every conversation is computed again when it next runs.
};

// Whether a state of the one geometry is one of the other.
bool are_alike(const Geometry& a, const Geometry& b);

Result<Plan, Refusal> decide(const Change& change, const Situation& situation);

enum class Fate : std::uint8_t {
  kept_running,   // It has a seat again, at the next step.
  restored,       // Idle, and in the new context.
  parked,         // It waits for a seat or for cells.
  kept_in_store,  // Idle, and out of the pool: in RAM, on disk.
  recompute,      // Its tokens are kept.
  dropped,        // Idle, and there was no budget to keep it.
};
std::string_view name(Fate fate);

enum class Reason : std::uint8_t { reconfigure, no_seat, pool_full, kv_type_changed, budget };
std::string_view name(Reason reason);

struct SequenceFate {
  std::optional<Seat> seat = {};  // Where it was.
  std::optional<RequestId> id = {};
  Tokens tokens = {};
  Bytes bytes = {};  // Of its cells.
  Fate fate = Fate::restored;
  Reason reason = Reason::reconfigure;
};
using Fates = std::vector<SequenceFate>;

struct Receipt {
  enum class Outcome : std::uint8_t { done, refused, rolled_back, stopping };
  Outcome outcome = Outcome::done;
  bool dry_run = false;
  std::int64_t version = 1;  // Of the geometry that is in force now.
  std::string reason = {};
  Path path = Path::beside;
  Geometry before = {}, after = {};  // After: what is in force, or with dry_run would be.
  Micros queue = {};                 // Until it was begun.
  Micros build = {};                 // Beside: the new context, while the old one served.
  Micros page_out = {};              // Copying cells out of the old context.
  Micros free = {}, init = {};       // In place: the old context, and the new one.
  Micros page_in = {};               // Copying cells into the new one.
  Micros pause = {};                 // In which no step could run.
  Micros total = {};
  Bytes moved{0};
  Cost cost = {};
  Fates fates = {};
  Refusal refusal = {};      // With `refused`.
  std::string failure = {};  // With `rolled_back`: why.
};

}  // namespace fermata::reconfigure
