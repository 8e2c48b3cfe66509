// The pool's part in moving: bytes of cells to the vault and back.
#include "base/check.h"
#include "kv/pool.h"

#include <algorithm>
#include <utility>

namespace fermata::kv {
namespace {

Tokens tokens_of(const std::vector<Piece>& pieces) {
  Tokens out{0};
  for (const Piece& piece : pieces) out += piece.tokens();
  return out;
}

Bytes bytes_of(const std::vector<Piece>& pieces) {
  Bytes out{0};
  for (const Piece& piece : pieces) out += piece.size();
  return out;
}

}  // namespace

Bytes Image::size() const { return bytes_of(pieces); }

Tokens Pool::mirrored(Seat seat) const { return tokens_of(at(seat).mirror); }

bool Pool::mirror_next(Seat seat) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::busy, "a mirror of a seat that nobody has");
  const Tokens begin = tokens_of(state.mirror);
  const Tokens end = next_block_end(begin, block_);
  FERMATA_CHECK(end <= ledger_.length(seat), "a mirror of what is not there");
  return copy(seat, begin, end, Hold::mirror, state.mirror);
}

// The whole sequence where the memory does not move in ranges.
bool Pool::copy(Seat seat, Tokens begin, Tokens end, Hold hold, std::vector<Piece>& into) {
  const bool ranges = engine_.capabilities().move_ranges;
  ByteBuffer bytes = vault_.buffer(engine_.range_bytes(end - begin));
  const bool done = ranges ? engine_.export_range(seat, begin, end, bytes).ok()
                           : engine_.export_sequence(seat, bytes).ok();
  const Bytes size{static_cast<std::int64_t>(bytes.size())};
  const bool fits = vault_.has_room(size) || (hold == Hold::parked && make_room(size, seat));
  if (!done || !fits) {
    vault_.give_back(std::move(bytes));
    return false;
  }
  into.push_back(vault_.put(std::move(bytes), end - begin, hold, hold == Hold::mirror));
  return true;
}

// The largest mirrors go first: few of them make room.
bool Pool::make_room(Bytes bytes, Seat except) {
  while (!vault_.has_room(bytes)) {
    SeatState* largest = nullptr;
    for (std::int32_t s = 0; s < seats(); ++s) {
      SeatState& state = at(Seat(s));
      if (Seat(s) == except || state.mirror.empty()) continue;
      if (largest == nullptr || bytes_of(state.mirror) > bytes_of(largest->mirror)) {
        largest = &state;
      }
    }
    if (largest == nullptr) return false;
    largest->mirror.clear();
  }
  return true;
}

Image Pool::image(Seat seat, bool with_bytes) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::busy, "an image of a seat that nobody has");
  Image out{state.tokens, std::exchange(state.mirror, {}), state.in_chunks};
  const Tokens begin = tokens_of(out.pieces), end = ledger_.length(seat);
  const bool whole =
      with_bytes && (begin == end || copy(seat, begin, end, Hold::parked, out.pieces));
  if (!whole) out.pieces.clear();
  for (Piece& piece : out.pieces) piece.hold_as(Hold::parked);
  return out;
}

Tokens Pool::restore(Seat seat, Image image) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::busy && state.tokens.empty(), "restoring onto something");
  if (image.pieces.empty()) return Tokens(0);
  const bool ranges = engine_.capabilities().move_ranges;
  for (const Piece& piece : image.pieces) {
    const bool done = ranges ? engine_.import_range(seat, piece.bytes()).ok()
                             : engine_.import_sequence(seat, piece.bytes()).ok();
    if (done) continue;
    engine_.clear(seat);
    return Tokens(0);
  }
  appended(seat, image.tokens);
  state.in_chunks = image.in_chunks;
  if (ranges) {
    // A short last piece would leave ever more of them behind.
    if (image.pieces.back().tokens() < block_) image.pieces.pop_back();
    for (Piece& piece : image.pieces) piece.hold_as(Hold::mirror);
    state.mirror = std::move(image.pieces);
  }
  return ledger_.length(seat);
}

}  // namespace fermata::kv
