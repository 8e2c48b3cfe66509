// The KV cells of one engine as seats that hold token lists: what is resident, who may start from
// it, what is promised to whom. Joins the engine and the ledger so that the two never disagree.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "core/geometry.h"
#include "engine/engine.h"
#include "kv/image.h"
#include "kv/ledger.h"
#include "kv/pool_types.h"
#include "kv/reservation.h"
#include "kv/seat_state.h"
#include "kv/shelf.h"
#include "kv/vault.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::kv {

// The scheduler thread's own. Lives shorter than the engine, longer than its reservations.
class Pool {
 public:
  explicit Pool(engine::Engine& engine, const PoolOptions& options = {});

  std::int32_t seats() const { return static_cast<std::int32_t>(seats_.size()); }
  const Ledger& ledger() const { return ledger_; }
  const Vault& vault() const { return vault_; }
  const Shelf& shelf() const { return shelf_; }
  SeatUse use(Seat seat) const;
  std::span<const TokenId> tokens(Seat seat) const;
  Micros last_used(Seat seat) const;
  const Owner& owner(Seat seat) const { return at(seat).owner; }
  const std::string& conversation(Seat seat) const { return at(seat).conversation; }

  // Whether bytes that come back give the same tokens as ever.
  bool can_restore() const { return can_restore_; }
  // Cells not promised and not held, idle seats counted as held. Of the whole pool: in the split
  // layout it tells nothing about a seat.
  Tokens unpromised() const;
  // Cells that busy seats hold.
  Tokens used_by_busy() const;
  // Cells that busy seats were promised and do not hold yet.
  Tokens outstanding() const;

  PrefixMatch match(Seat seat, std::span<const TokenId> prompt, const Owner& owner = {}) const;

  // What the shelf could spare for a prompt; see Shelf::offer.
  Offer offer(std::span<const TokenId> prompt, const Owner& owner = {}) const {
    return shelf_.offer(prompt, owner);
  }

  // Seats a sequence that keeps the first `keep` tokens of what the seat holds. Answers how many
  // were kept: fewer than asked when the memory could not be cut there. An idle conversation that
  // loses much goes to the shelf first; so with the next two.
  // REQUIRES: use(seat) != busy; keep <= match(seat, its prompt).own.
  Tokens take(Seat seat, Tokens keep);
  // Seats a sequence on the first n tokens of another seat's cells; what `seat` held is dropped.
  // REQUIRES: use(seat) != busy; n <= match(from, its prompt).shareable; seat != from.
  Tokens take_shared(Seat seat, Seat from, Tokens n);
  // Seats a sequence on what the shelf has for its prompt. Answers how many tokens the seat holds:
  // the offer's, or 0 when they could not be brought back. REQUIRES: use(seat) != busy.
  Tokens take_shelved(Seat seat, std::span<const TokenId> prompt, Offer offer,
                      const Owner& owner = {});
  // Whose conversation a busy seat holds from now on, and what its client calls it.
  void give_to(Seat seat, const Owner& owner, std::string_view conversation = {});
  // REQUIRES: use(seat) == busy; one reservation a seat at a time.
  [[nodiscard]] Reservation reserve(Seat seat, Tokens total);
  // Of an idle seat: it goes to the shelf when it is dropped, as far as the budget reaches.
  bool is_kept(Seat seat) const { return at(seat).is_kept && use(seat) == SeatUse::idle; }
  // Rows of any seat since this one was released.
  Tokens rows_since(Seat seat) const { return rows_ - at(seat).rows_before; }
  Tokens promised(Seat seat) const { return at(seat).promised; }  // 0: nothing.

  // The engine computed these rows of a busy seat.
  void appended(Seat seat, std::span<const TokenId> tokens);

  // A busy seat loses its tokens [keep, keep + discard). What moved down serves nobody else: no
  // prefix of others reaches into it, and it is not kept when the seat is released. Cells that
  // others hold are copied first.
  // REQUIRES: capabilities().shift; 0 <= keep, 1 <= discard, keep + discard < length.
  [[nodiscard]] Shifted shift(Seat seat, Tokens keep, Tokens discard);

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
  // Bytes of an image of so many tokens that were out of RAM. Empty, and `bytes` is as it was:
  // there is no room for them.
  std::vector<Piece> pieces_of(std::vector<ByteBuffer>& bytes, Tokens all);
  // A busy, empty seat holds what the image does, and its bytes are the seat's mirror: in the cells
  // of another seat as far as its mirror has the same bytes. 0: its cells could not be had, or it
  // has no bytes; the seat is still empty.
  Tokens restore(Seat seat, Image image);
  // A busy seat becomes idle and keeps its cells, or empty with keep == false.
  void release(Seat seat, bool keep, Micros now);
  // Tokens of an idle seat whose bytes would have to be copied before it is dropped, in blocks that
  // copy_next() can take; 0 also when it need not or cannot be kept.
  Tokens uncopied(Seat seat) const;
  // Copies the next block of an idle seat, so that dropping it will be short. False: the copy
  // failed or the budget is spent. REQUIRES: uncopied(seat) > 0.
  bool copy_next(Seat seat);
  // All that an idle seat holds, what was not copied yet too; its pieces end at whole blocks, but
  // for the last. Empty: it is not to be kept, or a copy failed.
  Image copy_all(Seat seat);
  // All that a seat holds, busy or idle, as bytes; it stays as it is. Empty: a copy failed, or the
  // cache's budget is spent.
  Image copy_of(Seat seat);
  // An empty seat becomes idle with cells that the library wrote. On failure it stays empty.
  // REQUIRES: they are a state of these tokens (Engine::is_state).
  Result<void, engine::MoveFault> install(Seat seat, std::span<const TokenId> tokens,
                                          std::span<const std::byte> state, const Owner& owner,
                                          Micros now);
  // Drops what an idle seat holds for good. No effect on an empty one. REQUIRES: not busy.
  void erase(Seat seat);
  // Puts what was stored elsewhere on the shelf, as far as the budget reaches: blocks from the
  // first token on, or one piece. False: nothing of it is there.
  bool shelve(std::span<const TokenId> tokens, std::vector<ByteBuffer> pieces, Tokens in_chunks,
              const Owner& owner);
  // For so many tokens in blocks: buffers that were used before, which are filled several times
  // faster, as far as there are some.
  std::vector<ByteBuffer> spare_buffers(Tokens tokens);
  // Drops idle conversations, on seats and on the shelf, of which `is_one` says so by their tokens,
  // their owner and, of one on a seat, its name.
  using IsOne = std::function<bool(std::span<const TokenId>, const Owner&, std::string_view name)>;
  void forget(const IsOne& is_one);
  // Drops what an idle seat holds; it goes to the shelf. No effect on an empty one.
  // REQUIRES: use(seat) != busy.
  void evict(Seat seat);
  // What is kept of conversations that nobody computes goes until its budget holds the rest: bytes
  // that had another holder may have become its own.
  void settle();
  // Grows whenever cells of a seat are dropped or replaced; appending leaves it.
  std::uint64_t version(Seat seat) const { return at(seat).version; }
  // The engine was replaced by another of the same model, in whose cells these seats lie already;
  // one that `like` names comes before. REQUIRES: the other seats are empty.
  void adopt(std::span<const Adopted> seats);
  // Bytes out of the pool mean nothing any more. REQUIRES: no seat holds anything.
  void forget_bytes() { shelf_.clear(); }
  // The engine is broken: everything is dropped, busy seats too (they stay busy and empty).
  void drop_everything();

 private:
  friend class Reservation;
  SeatState& at(Seat seat);
  const SeatState& at(Seat seat) const;
  // Of the first `common` tokens of a seat, those that may be reused.
  Tokens reusable(Seat seat, Tokens common) const;
  void check_agreement(Seat seat) const;
  bool copy(Seat seat, Tokens begin, Tokens end, Hold hold, std::vector<Piece>& into);
  bool copy_parked(Seat seat, Tokens begin, Tokens end, std::vector<Piece>& into);
  Image image(Seat seat, bool with_bytes, Tokens cut, const Image& like);
  bool hold_alike(Image& image) const;
  Tokens share_cells(Seat from, Seat seat, Tokens n);
  std::size_t restore_shared(Seat seat, const std::vector<Piece>& pieces);
  bool make_room(Bytes bytes, std::optional<Seat> except);
  void cut(Seat seat, Tokens keep);
  void drop(Seat seat);
  void shelve(Seat seat);
  bool own_cells(Seat seat, Tokens begin);
  bool is_snapshot(Seat seat) const;
  void align_mirror(SeatState& state) const;
  void hold_mirror(SeatState& state, Hold hold) const;
  void copy_rest(Seat seat);
  Image copies(Seat seat) const;

  engine::Engine& engine_;
  const Tokens block_;
  const Tokens chunk_;
  const Tokens cache_min_;
  const bool has_shelf_;
  bool can_restore_;
  bool keeps_idle_;  // What leaves the pool goes to the shelf.
  Ledger ledger_;
  Tokens rows_;  // Computed so far.
  Vault vault_;
  Shelf shelf_;
  std::vector<SeatState> seats_;
};

}  // namespace fermata::kv
