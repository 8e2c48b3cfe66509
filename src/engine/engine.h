// One context of one model: computes rows, holds the KV cells, moves them. What is possible depends
// on the kind of memory and the layout; capabilities() says so and the engine never tries more.
#pragma once

#include "base/byte_buffer.h"
#include "base/result.h"
#include "base/types.h"
#include "core/events.h"
#include "core/geometry.h"
#include "engine/sampler.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace fermata::engine {

enum class MemoryKind : std::uint8_t { attention, sliding_window, recurrent, hybrid };

struct EngineLimits {
  Tokens cells;        // All cells. The library pads: may be more than was asked for.
  Tokens window;       // The most tokens one sequence can hold.
  std::int32_t seats;  // Seats 0 .. seats-1.
  Tokens batch;        // The most rows of one step.
  Tokens ubatch;       // The most rows the library computes at once; cancellation's grain.
};

struct Capabilities {
  bool truncate_anywhere;  // truncate() keeps any prefix (attention).
  bool share_prefix;       // Cells of one sequence can belong to another, at no cost.
  bool move_ranges;        // export_range / import_range.
  bool ranges_are_cheap;   // About as fast as a plain copy of the bytes.
  bool move_sequences;     // export_sequence / import_sequence.
  bool cancel_in_ubatch;   // A cancelled ubatch ends early; else it is finished first.
  bool cells_per_token;    // Every token takes a cell of the pool (not so for recurrent memory).
  bool one_sequence_per_ubatch;  // Groups are computed apart, each in ubatches of its own.
  bool shift;                    // shift().
};

// What a cell takes in an exported range beside its K and V, at most: position, owner, its share of
// the header.
inline constexpr Bytes state_bytes_per_cell{16};

// What the library's files of a sequence begin with.
inline constexpr std::uint32_t state_file_magic = 0x67677371;
inline constexpr std::uint32_t state_file_version = 3;

// k >= 1 consecutive tokens of one sequence: a decode row, or a chunk of a prompt.
struct RowGroup {
  Seat seat;
  Tokens first;                                  // Position of tokens[0]; equals position(seat).
  std::span<const TokenId> tokens;               // Valid ids of the vocabulary.
  Sampler* sampler = nullptr;                    // Set: sample after the last token, and accept it.
  const std::atomic<bool>* cancelled = nullptr;  // May turn true during the step, on any thread.
};

struct Sampled {
  TokenId token{-1};
  float logprob = 0.0F;  // As TokenProbability::value; 0 when no probabilities were asked for.
  std::vector<TokenProbability> top;
};

struct GroupResult {
  Tokens computed{0};              // The prefix of its tokens that is in the cells now.
  std::optional<Sampled> sampled;  // Only when all tokens were computed and a sampler was given.
  bool sampler_failed = false;  // Its sampler cannot go on (a grammar's dead end); cells are good.
};

enum class StepOutcome : std::uint8_t {
  done,         // Every row computed.
  no_room,      // Nothing computed, cells as before. Free cells or send fewer rows.
  interrupted,  // Some groups were cancelled and skipped, or room ended half-way: see `computed`.
  broken,       // Content of the cells unknown. Clear every seat before the next step.
};

enum class EditOutcome : std::uint8_t {
  done,
  unsupported,  // Not with this memory or layout, or not at this place. Nothing changed.
};

enum class ShiftOutcome : std::uint8_t {
  done,
  unsupported,  // Not with this memory. Nothing changed.
  broken,       // As StepOutcome::broken.
};

enum class MoveFault : std::uint8_t {
  unsupported,  // This memory or layout cannot move that. Nothing changed.
  no_room,      // No cells for the import, or no memory for the export. Nothing changed.
  foreign,      // The bytes are not a range of this model, KV types or library. Nothing changed.
};

// Tells ranges that an engine can take from anything else: import_range trusts what they say of
// their place, and one bad number in a cell spoils what others compute. Pure, thread-safe.
class RangeCheck {
 public:
  virtual ~RangeCheck() = default;
  // Whether it is a whole range of exactly these tokens whose numbers are finite.
  virtual bool is_sound(std::span<const std::byte> bytes, Tokens begin, Tokens end) const = 0;
};

// All methods on the scheduler thread unless said. Keeps no span after returning.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual MemoryKind memory_kind() const = 0;
  virtual const Geometry& geometry() const = 0;          // As asked for, n_ctx as built.
  virtual const EngineLimits& limits() const = 0;        // Constant for the engine's life.
  virtual const Capabilities& capabilities() const = 0;  // Constant for the engine's life.

  // Computes the groups in order, in ubatches of at most limits().ubatch rows; before each ubatch
  // groups that are cancelled are left out, and an ubatch whose groups are all cancelled while it
  // runs ends early where capabilities() allow. results[i] belongs to groups[i] and is overwritten.
  // REQUIRES: 1 <= rows <= limits().batch; one group a seat; first == position(seat);
  //           first + tokens <= limits().window.
  [[nodiscard]] virtual StepOutcome step(std::span<const RowGroup> groups,
                                         std::span<GroupResult> results) = 0;

  // Tokens the seat holds now; the next row's position. The truth after an interrupted step.
  virtual Tokens position(Seat seat) const = 0;

  // The longest prefix not above `want` that truncate() can keep at this moment.
  virtual Tokens truncatable(Seat seat, Tokens want) const = 0;
  // Keeps the first `keep` tokens. REQUIRES: keep <= position(seat). keep == 0 is always done.
  [[nodiscard]] virtual EditOutcome truncate(Seat seat, Tokens keep) = 0;
  // `to` holds the first n tokens of `from` afterwards, in the same cells.
  // REQUIRES: to is empty; to != from; 1 <= n <= position(from).
  [[nodiscard]] virtual EditOutcome share_prefix(Seat from, Seat to, Tokens n) = 0;
  virtual void clear(Seat seat) = 0;
  // Drops the tokens [keep, keep + discard); those behind move down to their positions. Their cells
  // are not what computing the tokens at the new places would give. May compute one row.
  // REQUIRES: 0 <= keep, 1 <= discard, keep + discard < position(seat); no other seat holds the
  // cells of the tokens from keep + discard on.
  [[nodiscard]] virtual ShiftOutcome shift(Seat seat, Tokens keep, Tokens discard) = 0;

  // Bytes of an exported range of n >= 1 tokens; 0 where ranges do not move.
  virtual Bytes range_bytes(Tokens n) const = 0;
  // Exact bytes of tokens [begin, end) of a seat; `into` is resized to fit (reuse its capacity).
  // REQUIRES: 0 <= begin < end <= position(seat). The seat is unchanged.
  [[nodiscard]] virtual Result<void, MoveFault> export_range(Seat seat, Tokens begin, Tokens end,
                                                             ByteBuffer& into) = 0;
  // Appends what export_range gave, at the position it was exported from.
  // REQUIRES: the range began at position(seat). On failure the seat is unchanged.
  [[nodiscard]] virtual Result<void, MoveFault> import_range(Seat seat,
                                                             std::span<const std::byte> bytes) = 0;

  // For bytes that come from outside; outlives the engine. Null: it cannot tell, none are taken.
  virtual std::shared_ptr<const RangeCheck> range_check() const { return nullptr; }

  // Exact bytes of all that a seat holds, whatever the memory. They are for engines of the same
  // model file, KV types and options, in the split layout with as many seats.
  // REQUIRES: position(seat) > 0. The seat is unchanged.
  [[nodiscard]] virtual Result<void, MoveFault> export_sequence(Seat seat, ByteBuffer& into) = 0;
  // The seat holds what the exported one did. REQUIRES: position(seat) == 0; on failure it stays
  // so.
  [[nodiscard]] virtual Result<void, MoveFault> import_sequence(
      Seat seat, std::span<const std::byte> bytes) = 0;

  // The cells of a seat as the library's own files have them, which other programs read and write.
  // REQUIRES: position(seat) > 0. The seat is unchanged.
  [[nodiscard]] virtual Result<void, MoveFault> export_state(Seat /*seat*/, ByteBuffer& /*into*/) {
    return Err{MoveFault::unsupported};
  }
  // Whether the bytes are such cells of so many tokens, from the first on, of a model like this.
  virtual bool is_state(Tokens /*tokens*/, std::span<const std::byte> /*state*/) const {
    return false;
  }
  // REQUIRES: position(seat) == 0; on failure it stays so.
  [[nodiscard]] virtual Result<void, MoveFault> import_state(Seat /*seat*/, Tokens /*tokens*/,
                                                             std::span<const std::byte> /*state*/) {
    return Err{MoveFault::unsupported};
  }
};

}  // namespace fermata::engine
