// The KV cells of one engine as seats that hold token lists: what is resident, who may start from
// it, what is promised to whom. Joins the engine and the ledger so that the two never disagree.
#pragma once

#include "base/types.h"
#include "core/geometry.h"
#include "engine/engine.h"
#include "kv/ledger.h"
#include "kv/vault.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

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

class Pool;

// A sequence out of the pool: its tokens, and the exact bytes of their cells, from first to last,
// or none. Lives shorter than its pool.
struct Image {
  std::vector<TokenId> tokens;
  std::vector<Piece> pieces;
  Tokens in_chunks{0};  // Leading tokens that were computed as whole chunks; see Pool.

  Bytes size() const;
};

// Leading tokens whose bytes both images hold as the same ones.
Tokens shared(const Image& a, const Image& b);

// Cells promised to one busy seat: it may grow to `total` without asking again. Move-only; the
// promise ends with the object.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

 private:
  friend class Pool;
  Reservation(Pool& pool, Seat seat) : pool_(&pool), seat_(seat) {}
  Pool* pool_ = nullptr;
  Seat seat_;
};

// The scheduler thread's own. Lives shorter than the engine, longer than its reservations.
class Pool {
 public:
  // `budget`: bytes outside the pool, of images and mirrors together; none: no limit. `block`: what
  // a mirror grows by. `chunk`: cells are reused only where they were computed in steps of so many
  // rows, counted from position 0, as every prompt is (policy::View::chunk); 0: whatever their
  // shapes were.
  explicit Pool(engine::Engine& engine, std::optional<Bytes> budget = std::nullopt,
                Tokens block = block_tokens, Tokens chunk = Tokens(0));

  std::int32_t seats() const { return static_cast<std::int32_t>(seats_.size()); }
  const Ledger& ledger() const { return ledger_; }
  const Vault& vault() const { return vault_; }
  SeatUse use(Seat seat) const;
  std::span<const TokenId> tokens(Seat seat) const;
  Micros last_used(Seat seat) const;

  // Cells not promised and not held, idle seats counted as held. Of the whole pool: in the split
  // layout it tells nothing about a seat.
  Tokens unpromised() const;
  // Cells that busy seats hold.
  Tokens used_by_busy() const;
  // Cells that busy seats were promised and do not hold yet.
  Tokens outstanding() const;

  PrefixMatch match(Seat seat, std::span<const TokenId> prompt) const;

  // Seats a sequence that keeps the first `keep` tokens of what the seat holds. Answers how many
  // were kept: fewer than asked when the memory could not be cut there.
  // REQUIRES: use(seat) != busy; keep <= match(seat, its prompt).own.
  Tokens take(Seat seat, Tokens keep);
  // Seats a sequence on the first n tokens of another seat's cells; what `seat` held is dropped.
  // REQUIRES: use(seat) != busy; n <= match(from, its prompt).shareable; seat != from.
  Tokens take_shared(Seat seat, Seat from, Tokens n);
  // REQUIRES: use(seat) == busy; one reservation a seat at a time.
  [[nodiscard]] Reservation reserve(Seat seat, Tokens total);

  // The engine computed these rows of a busy seat.
  void appended(Seat seat, std::span<const TokenId> tokens);

  // Tokens of a seat, from its first on, whose bytes are in the vault as well.
  Tokens mirrored(Seat seat) const;
  // Copies the next block of a busy seat. False: the copy failed or the budget is spent.
  // REQUIRES: capabilities().move_ranges; the seat holds the whole block.
  bool mirror_next(Seat seat);

  // What a busy seat holds, with the bytes of its cells if they are wanted, can be moved and fit in
  // the budget: its mirror and the rest. Mirrors of others make room. The seat keeps its cells.
  Image image(Seat seat, bool with_bytes);
  // The same of several busy seats, in their order, added to `out`. What they share with the first
  // is stored once.
  void images(std::span<const Seat> seats, bool with_bytes, std::vector<Image>& out);
  // A busy, empty seat holds what the image does, and its bytes are the seat's mirror: in the cells
  // of another seat as far as its mirror has the same bytes. 0: its cells could not be had, or it
  // has no bytes; the seat is still empty.
  Tokens restore(Seat seat, Image image);
  // A busy seat becomes idle and keeps its cells, or empty with keep == false.
  void release(Seat seat, bool keep, Micros now);
  // Drops what an idle seat holds. No effect on an empty one. REQUIRES: use(seat) != busy.
  void evict(Seat seat);
  // The engine is broken: everything is dropped, busy seats too (they stay busy and empty).
  void drop_everything();

 private:
  friend class Reservation;
  struct SeatState {
    SeatUse use = SeatUse::empty;
    std::vector<TokenId> tokens;
    Micros last_used;
    Tokens promised;            // 0: no reservation.
    Tokens in_chunks;           // Leading tokens that were computed as whole chunks.
    std::vector<Piece> mirror;  // Of a busy seat.
  };
  SeatState& at(Seat seat);
  const SeatState& at(Seat seat) const;
  // Of the first `common` tokens of a seat, those that may be reused.
  Tokens reusable(Seat seat, Tokens common) const;
  void check_agreement(Seat seat) const;
  bool copy(Seat seat, Tokens begin, Tokens end, Hold hold, std::vector<Piece>& into);
  Image image(Seat seat, bool with_bytes, Tokens cut, const Image& like);
  Tokens share_cells(Seat from, Seat seat, Tokens n);
  std::size_t restore_shared(Seat seat, const std::vector<Piece>& pieces);
  bool make_room(Bytes bytes, Seat except);

  engine::Engine& engine_;
  const Tokens block_;
  const Tokens chunk_;
  Ledger ledger_;
  Vault vault_;
  std::vector<SeatState> seats_;
};

}  // namespace fermata::kv
