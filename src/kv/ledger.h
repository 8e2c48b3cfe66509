// Counts the cells of one cache of the library: every cell once, however many sequences share it.
// If the ledger says that rows fit, the engine never answers no_room.
//
// Sharing is always of a prefix, at the same positions, so the cells of all sequences form a
// forest: a sequence is a list of segments, a segment a run of cells with one set of owners.
//
//   seat 0:  [ A: 0..99 ] [ B: 100..149 ]        A is owned by {0, 1}, B by {0}, C by {1};
//   seat 1:  [ A: 0..99 ] [ C: 100..119 ]        used = |A| + |B| + |C|
#pragma once

#include "base/types.h"
#include "core/geometry.h"

#include <bitset>
#include <cstdint>
#include <vector>

namespace fermata::kv {

using SeatSet = std::bitset<n_parallel_max + 1>;

// Not thread-safe: the scheduler thread's own. Every method checks that the seat exists.
class Ledger {
 public:
  // `cells_per_token` false: tokens take no cells of the pool (recurrent memory); lengths are kept.
  Ledger(std::int32_t seats, bool cells_per_token);

  Tokens length(Seat seat) const;
  Tokens used() const { return used_; }
  // Cells that only this seat owns: what clear(seat) would free.
  Tokens exclusive(Seat seat) const;
  // Cells that these seats own and no other: what clearing all of them would free.
  Tokens exclusive(const SeatSet& seats) const;
  // Leading cells that both own.
  Tokens shared(Seat a, Seat b) const;
  // Cells that at least one of the seats owns.
  Tokens used_by(const SeatSet& seats) const;

  // REQUIRES: n >= 0.
  void append(Seat seat, Tokens n);
  // REQUIRES: 0 <= keep <= length(seat).
  void truncate(Seat seat, Tokens keep);
  // REQUIRES: to is empty, to != from, 1 <= n <= length(from).
  void share(Seat from, Seat to, Tokens n);
  void clear(Seat seat) { truncate(seat, Tokens(0)); }
  // Tokens [keep, keep + discard) are gone. REQUIRES: they are there, and the cells behind them are
  // this seat's alone.
  void shift(Seat seat, Tokens keep, Tokens discard);
  // Leading cells that somebody else owns, too.
  Tokens shared(Seat seat) const;

 private:
  struct Segment {
    Tokens length;
    SeatSet owners;  // None: the slot is free for reuse.
  };
  struct Sequence {
    Tokens length;
    std::vector<std::size_t> segments;  // From position 0 on.
  };

  std::size_t index(Seat seat) const;
  std::size_t new_segment(Tokens length, const SeatSet& owners);
  void split(std::size_t segment, Tokens at);
  void disown(Sequence& sequence, std::size_t seat);

  bool cells_per_token_;
  Tokens used_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> free_segments_;
  std::vector<Sequence> sequences_;
};

}  // namespace fermata::kv
