// The pool's part in context shifts: what it holds stays true though cells moved.
#include "base/check.h"
#include "kv/pool.h"

#include <algorithm>
#include <utility>

namespace fermata::kv {

// From `begin` on the seat holds cells of its own, where it held them with others. False: it holds
// less than before, for want of room.
bool Pool::own_cells(Seat seat, Tokens begin) {
  const Tokens shared = ledger_.shared(seat), end = ledger_.length(seat);
  if (shared <= begin) return true;
  const Tokens more = shared - begin, left = engine_.limits().cells - ledger_.used();
  ByteBuffer bytes = vault_.buffer(engine_.range_bytes(end - begin));
  const bool is_copied = more <= left && engine_.export_range(seat, begin, end, bytes).ok() &&
                         engine_.truncate(seat, begin) == engine::EditOutcome::done;
  bool done = false;
  if (is_copied) {
    ledger_.truncate(seat, begin);
    done = engine_.import_range(seat, bytes).ok();
    if (done) ledger_.append(seat, end - begin);
  }
  vault_.give_back(std::move(bytes));
  return done;
}

Shifted Pool::shift(Seat seat, Tokens keep, Tokens discard) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::busy, "shifting a seat that nobody has");
  const auto outcome = own_cells(seat, keep + discard) ? engine_.shift(seat, keep, discard)
                                                       : engine::ShiftOutcome::unsupported;
  if (outcome == engine::ShiftOutcome::broken) return Shifted::broken;
  if (outcome == engine::ShiftOutcome::unsupported) {
    const auto done = engine_.truncate(seat, keep);
    FERMATA_CHECK(done == engine::EditOutcome::done, "a sequence that cannot be cut");
    cut(seat, keep);
    return Shifted::to_compute;
  }
  ++state.version;
  ledger_.shift(seat, keep, discard);
  const auto gap = state.tokens.begin() + keep.value;
  state.tokens.erase(gap, gap + discard.value);
  state.in_chunks = std::min(state.in_chunks, keep);
  while (tokens_of(state.mirror) > keep) state.mirror.pop_back();
  state.unshifted = std::min(state.unshifted, keep);
  check_agreement(seat);
  return Shifted::done;
}

}  // namespace fermata::kv
