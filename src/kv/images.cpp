// The pool's part in moving: bytes of cells to the vault and back.
#include "base/check.h"
#include "kv/pool.h"

#include <algorithm>
#include <utility>

namespace fermata::kv {
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
  const bool fits = vault_.has_room(size, hold) ||
                    (hold == Hold::parked && make_room(size, seat)) ||
                    (hold == Hold::cached && shelf_.make_room(size));
  if (!done || !fits) {
    vault_.give_back(std::move(bytes));
    return false;
  }
  into.push_back(vault_.put(std::move(bytes), end - begin, hold, hold != Hold::parked));
  return true;
}

// The largest mirrors go first: few of them make room.
bool Pool::make_room(Bytes bytes, std::optional<Seat> except) {
  while (!vault_.has_room(bytes, Hold::parked)) {
    SeatState* largest = nullptr;
    for (std::int32_t s = 0; s < seats(); ++s) {
      SeatState& state = at(Seat(s));
      if (except == Seat(s) || state.use != SeatUse::busy || state.mirror.empty()) continue;
      if (largest == nullptr || bytes_of(state.mirror) > bytes_of(largest->mirror)) {
        largest = &state;
      }
    }
    if (largest == nullptr) return false;
    largest->mirror.clear();
  }
  return true;
}

// All of them stay in RAM, or all pass.
bool Pool::hold_alike(Image& image) const {
  Bytes in_ram{0};
  for (const Piece& piece : image.pieces) {
    if (piece.hold() != Hold::passing) in_ram += piece.size();
  }
  const Hold hold = in_ram == image.size() ? Hold::parked : Hold::passing;
  if (hold == Hold::passing && !vault_.has_room(in_ram, hold)) return false;
  for (Piece& piece : image.pieces) piece.hold_as(hold);
  return true;
}

Image Pool::image(Seat seat, bool with_bytes) { return image(seat, with_bytes, Tokens(0), {}); }

void Pool::images(std::span<const Seat> seats, bool with_bytes, std::vector<Image>& out) {
  const std::size_t first = out.size();
  Tokens cut{0};
  for (const Seat seat : seats.subspan(1)) cut = std::max(cut, ledger_.shared(seats[0], seat));
  out.push_back(image(seats[0], with_bytes, cut, {}));
  for (const Seat seat : seats.subspan(1)) {
    out.push_back(image(seat, with_bytes, ledger_.shared(seats[0], seat), out[first]));
  }
}

// To RAM or, where that is full, on to what is slower: then in whole blocks, as it is stored there.
bool Pool::copy_parked(Seat seat, Tokens begin, Tokens end, std::vector<Piece>& into) {
  if (!vault_.has_slower_tier() || !engine_.capabilities().move_ranges) {
    return copy(seat, begin, end, Hold::parked, into) ||
           (vault_.has_slower_tier() && copy(seat, begin, end, Hold::passing, into));
  }
  Hold hold = Hold::parked;
  while (begin < end) {
    const Tokens next = std::min(next_block_end(begin, block_), end);
    bool done = copy(seat, begin, next, hold, into);
    if (!done && std::exchange(hold, Hold::passing) == Hold::parked) {
      done = copy(seat, begin, next, hold, into);
    }
    if (!done) return false;
    begin = next;
  }
  return true;
}

// Pieces end at `cut`; up to there those of `like` are its own as well.
Image Pool::image(Seat seat, bool with_bytes, Tokens cut, const Image& like) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::busy, "an image of a seat that nobody has");
  if (vault_.has_slower_tier()) align_mirror(state);
  Image out{state.tokens, std::exchange(state.mirror, {}), state.in_chunks, state.unshifted};
  const Tokens end = ledger_.length(seat);
  Tokens begin = tokens_of(out.pieces), passed{0};
  if (!engine_.capabilities().move_ranges) cut = Tokens(0);
  if (vault_.has_slower_tier()) cut = Tokens(cut.value / block_.value * block_.value);
  for (const Piece& piece : like.pieces) {
    if (with_bytes && passed == begin && begin + piece.tokens() <= cut) {
      out.pieces.push_back(piece.share());
      begin += piece.tokens();
    }
    passed += piece.tokens();
  }
  bool whole = with_bytes;
  if (whole && begin < cut && cut < end) {
    whole = copy_parked(seat, begin, cut, out.pieces);
    begin = cut;
  }
  whole = whole && (begin == end || copy_parked(seat, begin, end, out.pieces));
  if (!whole || !hold_alike(out)) out.pieces.clear();
  return out;
}

std::vector<Piece> Pool::pieces_of(std::vector<ByteBuffer>& bytes, Tokens all) {
  std::vector<Piece> out;
  const bool ranges = engine_.capabilities().move_ranges;
  Bytes size{0};
  for (const ByteBuffer& one : bytes) size += Bytes(static_cast<std::int64_t>(one.size()));
  Hold hold = Hold::parked;
  if (!vault_.has_room(size, hold) && !make_room(size, {})) hold = Hold::passing;
  if (!vault_.has_room(size, hold)) return out;
  Tokens begin{0};
  for (ByteBuffer& one : bytes) {
    const Tokens end = ranges ? std::min(next_block_end(begin, block_), all) : all;
    out.push_back(vault_.put(std::move(one), end - begin, hold, true));
    begin = end;
  }
  FERMATA_CHECK(begin == all, "bytes that are not those of the image");
  return out;
}

// The cells of another seat for as many pieces as both have; how many those are.
std::size_t Pool::restore_shared(Seat seat, const std::vector<Piece>& pieces) {
  std::size_t most = 0;
  Seat from;
  for (std::int32_t s = 0; s < seats(); ++s) {
    const std::size_t common = common_pieces(at(Seat(s)).mirror, pieces);
    if (Seat(s) == seat || common <= most) continue;
    most = common;
    from = Seat(s);
  }
  if (most == 0) return 0;
  const Tokens n = tokens_of(std::span(pieces).first(most));
  return share_cells(from, seat, n) == n ? most : 0;
}

Tokens Pool::restore(Seat seat, Image image) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::busy && state.tokens.empty(), "restoring onto something");
  if (image.pieces.empty()) return Tokens(0);
  const bool ranges = engine_.capabilities().move_ranges;
  const std::size_t shared = restore_shared(seat, image.pieces);
  for (const Piece& piece : std::span(image.pieces).subspan(shared)) {
    const bool done = ranges ? engine_.import_range(seat, piece.bytes()).ok()
                             : engine_.import_sequence(seat, piece.bytes()).ok();
    if (done) continue;
    drop(seat);
    state.use = SeatUse::busy;
    return Tokens(0);
  }
  appended(seat, std::span(image.tokens).subspan(state.tokens.size()));
  state.in_chunks = image.in_chunks;
  state.unshifted = image.unshifted;
  if (ranges) {
    // A short last piece would leave ever more of them behind, unless others come back by it.
    const Piece& last = image.pieces.back();
    if (last.tokens() < block_ && !last.is_shared()) image.pieces.pop_back();
    state.mirror = std::move(image.pieces);
    hold_mirror(state, Hold::mirror);
  }
  return ledger_.length(seat);
}

}  // namespace fermata::kv
