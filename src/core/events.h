// What the scheduler tells about a request: any number of token events, then exactly one final.
#pragma once

#include "base/types.h"

#include <optional>
#include <string>
#include <vector>

namespace fermata {

struct TokenProbability {
  TokenId token{-1};
  float value =
      0.0F;  // Natural log-probability, or a probability with post_sampling_probs. Finite.
};

struct Timings {
  Tokens prompt_cached;    // Not computed: see PrefixSource.
  Tokens prompt_computed;  // prompt_cached + prompt_computed = the prompt's length.
  Micros prompt_time;      // From the start of the work on the prompt to the first token.
  Tokens predicted;
  Micros predicted_time;  // From the first token to the last.
  Micros queue_time;      // From submission to admission.
};

struct TokenEvent {
  TokenId token{-1};
  Seat seat = {};  // Where it was computed.
  // The bytes that this token released: may be empty (held back for a stop word) or hold more than
  // its own. The texts of all events concatenate to the reply. Not always whole UTF-8 characters.
  std::string text;
  float logprob = 0.0F;                 // Of `token`; only when probabilities were asked for.
  std::vector<TokenProbability> top;    // Sorted, best first; at most n_probs.
  std::optional<Timings> timings = {};  // Up to this token; only when asked for.
};

// How far the prompt is, for clients that asked to see it.
struct ProgressEvent {
  Tokens total, cached, processed;
  Micros elapsed;
  Seat seat;
};

enum class FinishReason : std::uint8_t {
  eos,        // The model ended its reply.
  word,       // A stop word was met; FinalEvent::stop_word tells which.
  limit,      // max_tokens, predict_time_max or n_indent reached.
  window,     // The window is full: ends like `limit`.
  cancelled,  // The client went away or asked for the end.
  failed,     // FinalEvent::failure tells why.
};

enum class NoticeKind : std::uint8_t {
  preempted,     // The request waits out of the pool ...
  resumed,       // ... and does so no more. Always in pairs.
  reconfigured,  // The geometry has changed.
};

struct Notice {
  NoticeKind kind = NoticeKind::preempted;
  std::size_t after = 0;  // So many token events of the same take() come before it.
};

enum class FailureKind : std::uint8_t {
  none,
  larger_than_window,  // The prompt alone fills the window or more; nothing was computed.
  no_such_seat,        // The seat it insists on does not exist.
  sampler_failed,      // No token satisfies the grammar; the reply so far is valid.
  pool_full,      // No cells for its next token, and parking is off; the reply so far is valid.
  engine_broken,  // The library failed in a step; the reply so far is valid.
  no_engine,      // No context could be built for a while; nothing was computed.
  stopping,       // The server is shutting down.
};

// What parking did to a request. Nothing of it is in its Timings.
struct Parking {
  std::int32_t swaps = 0, recomputes = 0;  // Parks by what became of the cells.
  std::int32_t spilled = 0;                // Of the swaps: out of RAM for a time.
  Micros time;               // Parked, or computing again what had been computed before.
  Tokens recomputed;         // Rows computed again.
  bool same_shapes = false;  // They were computed in the shapes of the first time: no bit differs.

  std::int32_t parks() const { return swaps + recomputes; }
};

// Where the beginning of a prompt came from that was not computed.
enum class PrefixSource : std::uint8_t {
  none,
  pool,  // Cells that were there.
  ram,   // Bytes of a conversation that had left the pool.
  disk,  // The same, from the store.
};

struct FinalEvent {
  FinishReason reason = FinishReason::failed;
  FailureKind failure = FailureKind::none;
  std::string text;        // What was held back for a stop word that never came. Often empty.
  std::string stop_word;   // With FinishReason::word.
  bool truncated = false;  // It ended with the window, or lost tokens to a shift of the context.
  bool is_cut = false;     // The text of its last tokens was left out: a stop word, or n_indent.
  Timings timings;
  Parking parking;
  PrefixSource prefix_source = PrefixSource::none;
  Tokens prompt_tokens;
  Tokens window;  // The limit that applied to it, for error messages.
  std::optional<Seat> seat;
  std::uint32_t seed = 0;
};

}  // namespace fermata
