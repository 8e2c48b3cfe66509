// The pool's part in keeping conversations that nobody computes.
#include "base/check.h"
#include "kv/pool.h"

#include <algorithm>
#include <utility>

namespace fermata::kv {

// As far as the budget of the new purpose reaches.
void Pool::hold_mirror(SeatState& state, Hold hold) const {
  const auto is_charged_alike = [&](const Piece& piece) {
    const bool is_preempt = piece.hold() == Hold::parked || piece.hold() == Hold::mirror;
    return is_preempt ? hold == Hold::parked || hold == Hold::mirror : piece.hold() == hold;
  };
  for (std::size_t i = 0; i < state.mirror.size(); ++i) {
    Piece& piece = state.mirror[i];
    if (!is_charged_alike(piece) && !vault_.has_room(piece.size(), hold)) {
      state.mirror.resize(i);
      return;
    }
    piece.hold_as(hold);
  }
}

Tokens Pool::uncopied(Seat seat) const {
  const SeatState& state = at(seat);
  if (state.use != SeatUse::idle || !state.is_kept) return Tokens(0);
  const Tokens held = ledger_.length(seat), copied = tokens_of(state.mirror);
  if (!engine_.capabilities().move_ranges) return copied == held ? Tokens(0) : held;
  return next_block_end(copied, block_) <= held ? held - copied : Tokens(0);
}

bool Pool::copy_next(Seat seat) {
  SeatState& state = at(seat);
  FERMATA_CHECK(uncopied(seat) > Tokens(0), "nothing to copy");
  Tokens begin = tokens_of(state.mirror), end = next_block_end(begin, block_);
  if (!engine_.capabilities().move_ranges) {
    begin = Tokens(0);
    end = ledger_.length(seat);
  }
  state.is_kept = copy(seat, begin, end, Hold::cached, state.mirror);
  return state.is_kept;
}

// Whether its state is copied as a whole, and cannot be had again once the sequence goes on.
bool Pool::is_snapshot(Seat seat) const {
  const engine::Capabilities& can = engine_.capabilities();
  return !can.move_ranges && !can.truncate_anywhere && !at(seat).mirror.empty();
}

// Pieces of a seat that goes on after a copy of all of it end somewhere; the rest is copied anew.
void Pool::align_mirror(SeatState& state) const {
  if (!engine_.capabilities().move_ranges) return;
  Tokens end{0};
  for (std::size_t i = 0; i < state.mirror.size(); ++i) {
    const Tokens begin = end;
    end += state.mirror[i].tokens();
    if (end == next_block_end(begin, block_)) continue;
    state.mirror.resize(i);
    return;
  }
}

// All blocks, and what is behind the last one.
void Pool::copy_rest(Seat seat) {
  SeatState& state = at(seat);
  while (state.is_kept && uncopied(seat) > Tokens(0)) (void)copy_next(seat);
  const Tokens copied = tokens_of(state.mirror), length = ledger_.length(seat);
  if (state.is_kept && copied < length) {
    state.is_kept = copy(seat, copied, length, Hold::cached, state.mirror);
  }
}

// As far as they go.
Image Pool::copies(Seat seat) const {
  const SeatState& state = at(seat);
  Image image;
  for (const Piece& piece : state.mirror) image.pieces.push_back(piece.share());
  const Tokens copied = tokens_of(image.pieces);
  image.tokens.assign(state.tokens.begin(), state.tokens.begin() + copied.value);
  image.in_chunks = std::min(state.in_chunks, copied);
  image.owner = state.owner;
  return image;
}

Image Pool::copy_all(Seat seat) {
  if (at(seat).use != SeatUse::idle) return {};
  copy_rest(seat);
  return at(seat).is_kept ? copies(seat) : Image{};
}

Image Pool::copy_of(Seat seat) {
  const SeatState& state = at(seat);
  const bool ranges = engine_.capabilities().move_ranges;
  const Tokens all = ledger_.length(seat);
  Image image;
  Tokens begin{0};
  for (const Piece& piece : state.mirror) {
    // Only whole blocks, and what ends where the seat does.
    const Tokens end = begin + piece.tokens();
    if (ranges && end != next_block_end(begin, block_) && end != all) break;
    if (!ranges && end != all) break;
    image.pieces.push_back(piece.share());
    begin = end;
  }
  while (begin < all) {
    const Tokens end = ranges ? std::min(next_block_end(begin, block_), all) : all;
    if (!copy(seat, begin, end, Hold::cached, image.pieces)) return {};
    begin = end;
  }
  for (Piece& piece : image.pieces) piece.hold_as(Hold::cached);
  image.tokens = state.tokens;
  image.in_chunks = state.in_chunks;
  image.owner = state.owner;
  return image;
}

Result<void, engine::MoveFault> Pool::install(Seat seat, std::span<const TokenId> tokens,
                                              std::span<const std::byte> bytes, const Owner& owner,
                                              Micros now) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::empty, "a state onto a conversation");
  const Tokens all{static_cast<std::int64_t>(tokens.size())};
  if (auto done = engine_.import_state(seat, all, bytes); !done) return done;
  state.use = SeatUse::busy;
  appended(seat, tokens);
  state.in_chunks = Tokens(0);  // Nobody knows how they were computed.
  give_to(seat, owner);
  release(seat, true, now);
  return {};
}

void Pool::erase(Seat seat) {
  FERMATA_CHECK(at(seat).use != SeatUse::busy, "erasing a seated sequence");
  drop(seat);
}

bool Pool::shelve(std::span<const TokenId> tokens, std::vector<ByteBuffer> pieces, Tokens in_chunks,
                  const Owner& owner) {
  Image image;
  image.owner = owner;
  Tokens begin{0};
  const Tokens all{static_cast<std::int64_t>(tokens.size())};
  for (ByteBuffer& bytes : pieces) {
    const Tokens end =
        engine_.capabilities().move_ranges ? std::min(next_block_end(begin, block_), all) : all;
    const Bytes size{static_cast<std::int64_t>(bytes.size())};
    if (end <= begin || !keeps_idle_ || !shelf_.make_room(size)) break;
    image.pieces.push_back(vault_.put(std::move(bytes), end - begin, Hold::cached, true));
    begin = end;
  }
  if (begin == Tokens(0)) return false;
  image.tokens.assign(tokens.begin(), tokens.begin() + begin.value);
  image.in_chunks = std::min(in_chunks, begin);
  shelf_.put(std::move(image));
  return true;
}

std::vector<ByteBuffer> Pool::spare_buffers(Tokens tokens) {
  std::vector<ByteBuffer> out;
  if (!engine_.capabilities().move_ranges) return out;
  for (Tokens begin{0}; begin < tokens; begin = next_block_end(begin, block_)) {
    const Tokens end = std::min(next_block_end(begin, block_), tokens);
    auto spare = vault_.spare(engine_.range_bytes(end - begin));
    if (!spare) break;
    out.push_back(std::move(*spare));
  }
  return out;
}

// What cannot be copied is left out, from the end on.
void Pool::shelve(Seat seat) {
  if (at(seat).use != SeatUse::idle || !keeps_idle_ || ledger_.length(seat) < cache_min_) return;
  copy_rest(seat);
  Image image = copies(seat);
  if (!image.tokens.empty()) shelf_.put(std::move(image));
}

void Pool::forget(const IsOne& is_one) {
  shelf_.forget([&](const Image& entry) { return is_one(entry.tokens, entry.owner, {}); });
  for (std::int32_t s = 0; s < seats(); ++s) {
    const SeatState& state = at(Seat(s));
    const bool is_idle = state.use == SeatUse::idle;
    if (is_idle && is_one(state.tokens, state.owner, state.conversation)) drop(Seat(s));
  }
}

void Pool::settle() {
  shelf_.trim();
  for (SeatState& state : seats_) {
    if (vault_.has_room(Bytes(0), Hold::cached)) return;
    if (state.use == SeatUse::idle && !state.mirror.empty()) {
      state.mirror.clear();
      state.is_kept = false;
    }
  }
}

Tokens Pool::take_shelved(Seat seat, std::span<const TokenId> prompt, Offer offer,
                          const Owner& owner) {
  // First of all: what the seat holds may push it off the shelf.
  Image image = shelf_.share(prompt, offer, owner);
  const Tokens emptied = take(seat, Tokens(0));
  FERMATA_CHECK(emptied == Tokens(0), "a cleared seat holds tokens");
  const Tokens restored = restore(seat, std::move(image));
  if (restored <= offer.reuse) return restored;
  if (engine_.truncate(seat, offer.reuse) == engine::EditOutcome::unsupported) {
    drop(seat);
    at(seat).use = SeatUse::busy;
    return Tokens(0);
  }
  cut(seat, offer.reuse);
  return offer.reuse;
}

}  // namespace fermata::kv
