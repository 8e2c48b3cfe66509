// The pool's plain values.
#pragma once

#include "base/types.h"
#include "core/geometry.h"
#include "kv/vault.h"

#include <cstdint>
#include <optional>

namespace fermata::kv {

enum class SeatUse : std::uint8_t {
  empty,  // Holds nothing.
  idle,   // Holds the tokens of a finished request, for the next that begins alike.
  busy,   // A sequence is seated.
};

// How much of a prompt a seat's cells can spare; always less than the prompt, since the last token
// must be computed to have something to sample from. Where shapes are fixed only cells that the
// prompt itself would compute just so: whole chunks of another one.
struct PrefixMatch {
  Tokens own;        // Kept when the request takes this very seat.
  Tokens shareable;  // Shared into another seat.
};

enum class Shifted : std::uint8_t {
  done,
  to_compute,  // The seat holds the tokens before the gap; the others are to be computed again.
  broken,      // As engine::StepOutcome::broken.
};

struct PoolOptions {
  Budgets budgets;
  Tokens block = block_tokens;  // What a mirror grows by.
  // Cells are reused only where they were computed in steps of so many rows, counted from position
  // 0, as every prompt is (policy::View::chunk); 0: whatever their shapes were.
  Tokens chunk{0};
  Tokens cache_min{32};  // Shorter conversations are not kept out of the pool.
};

// What became of a seat in another engine. See Pool::adopt.
struct Adopted {
  Seat from, to;
  std::optional<Seat> like = {};  // A seat of the other engine whose first cells it has.
  Tokens shared{0};               // So many.
};

}  // namespace fermata::kv
