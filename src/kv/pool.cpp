#include "kv/pool.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace fermata::kv {
namespace {

bool comes_back_alike(const engine::Engine& engine, Tokens chunk) {
  // A window's cells come back in another place, and sums over them in another order.
  const bool moves_cells = engine.memory_kind() == engine::MemoryKind::sliding_window;
  if (chunk > Tokens(0) && moves_cells) return false;
  return engine.capabilities().move_ranges || engine.capabilities().move_sequences;
}

}  // namespace

Reservation::Reservation(Reservation&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), seat_(other.seat_) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  if (pool_ != nullptr) pool_->at(seat_).promised = Tokens(0);
  pool_ = std::exchange(other.pool_, nullptr);
  seat_ = other.seat_;
  return *this;
}

Reservation::~Reservation() {
  if (pool_ != nullptr) pool_->at(seat_).promised = Tokens(0);
}

Pool::Pool(engine::Engine& engine, const PoolOptions& options)
    : engine_(engine),
      block_(options.block),
      chunk_(options.chunk),
      cache_min_(options.cache_min),
      has_shelf_(options.budgets.cache != Bytes(0)),
      can_restore_(comes_back_alike(engine, options.chunk)),
      keeps_idle_(can_restore_ && has_shelf_),
      ledger_(engine.limits().seats, engine.capabilities().cells_per_token),
      vault_(options.budgets),
      shelf_(vault_, {.block = options.block,
                      .chunk = options.chunk,
                      .least = options.cache_min,
                      .cuts = engine.capabilities().truncate_anywhere}),
      seats_(static_cast<std::size_t>(engine.limits().seats)) {}

SeatState& Pool::at(Seat seat) {
  FERMATA_CHECK(seat.value >= 0 && seat.value < seats(), "a seat that does not exist");
  return seats_[static_cast<std::size_t>(seat.value)];
}

const SeatState& Pool::at(Seat seat) const {
  FERMATA_CHECK(seat.value >= 0 && seat.value < seats(), "a seat that does not exist");
  return seats_[static_cast<std::size_t>(seat.value)];
}

SeatUse Pool::use(Seat seat) const { return at(seat).use; }
std::span<const TokenId> Pool::tokens(Seat seat) const { return at(seat).tokens; }
Micros Pool::last_used(Seat seat) const { return at(seat).last_used; }

Tokens Pool::outstanding() const {
  Tokens out{0};
  for (std::int32_t s = 0; s < seats(); ++s) {
    const SeatState& state = at(Seat(s));
    const Tokens held{static_cast<std::int64_t>(state.tokens.size())};
    if (state.promised > held) out += state.promised - held;
  }
  return engine_.capabilities().cells_per_token ? out : Tokens(0);
}

Tokens Pool::used_by_busy() const {
  SeatSet busy;
  for (std::size_t s = 0; s < seats_.size(); ++s) busy.set(s, seats_[s].use == SeatUse::busy);
  return ledger_.used_by(busy);
}

Tokens Pool::unpromised() const { return engine_.limits().cells - ledger_.used() - outstanding(); }

Tokens Pool::reusable(Seat seat, Tokens common) const {
  common = std::min(common, at(seat).unshifted);
  if (chunk_ == Tokens(0)) return common;
  const Tokens whole = std::min(common - Tokens(common.value % chunk_.value), at(seat).in_chunks);
  // A window's cells do not lie as they would, once what came later is cut off.
  const bool as_if_new = engine_.capabilities().truncate_anywhere || whole == ledger_.length(seat);
  return as_if_new ? whole : Tokens(0);
}

PrefixMatch Pool::match(Seat seat, std::span<const TokenId> prompt, const Owner& owner) const {
  const SeatState& state = at(seat);
  if (state.owner != owner || state.tokens.empty() || prompt.size() < 2) return {};
  const Tokens common =
      reusable(seat, common_prefix(state.tokens, prompt.first(prompt.size() - 1)));
  PrefixMatch out;
  if (common > Tokens(0) && state.use != SeatUse::busy) out.own = engine_.truncatable(seat, common);
  if (engine_.capabilities().share_prefix) out.shareable = common;
  return out;
}

Tokens Pool::take(Seat seat, Tokens keep) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use != SeatUse::busy, "taking a seat that somebody has");
  if (!goes_on(ledger_.length(seat), keep) || is_snapshot(seat)) shelve(seat);
  if (engine_.truncate(seat, keep) == engine::EditOutcome::unsupported) {
    engine_.clear(seat);
    keep = Tokens(0);
  }
  state.use = SeatUse::busy;
  cut(seat, keep);
  hold_mirror(state, Hold::mirror);
  return keep;
}

// After the engine did.
void Pool::cut(Seat seat, Tokens keep) {
  SeatState& state = at(seat);
  ++state.version;
  ledger_.truncate(seat, keep);
  state.tokens.resize(static_cast<std::size_t>(keep.value));
  state.in_chunks = std::min(state.in_chunks, keep);
  if (keep <= state.unshifted) state.unshifted = everything;
  while (tokens_of(state.mirror) > keep) state.mirror.pop_back();
  if (!engine_.capabilities().move_ranges) state.mirror.clear();  // Soon less than it holds.
  check_agreement(seat);
}

Tokens Pool::take_shared(Seat seat, Seat from, Tokens n) {
  const Tokens kept = take(seat, Tokens(0));
  FERMATA_CHECK(kept == Tokens(0), "a cleared seat holds tokens");
  return n == Tokens(0) ? n : share_cells(from, seat, n);
}

Tokens Pool::share_cells(Seat from, Seat seat, Tokens n) {
  if (engine_.share_prefix(from, seat, n) == engine::EditOutcome::unsupported) return Tokens(0);
  ledger_.share(from, seat, n);
  const auto& source = at(from).tokens;
  at(seat).tokens.assign(source.begin(), source.begin() + n.value);
  at(seat).in_chunks = std::min(at(from).in_chunks, n);
  check_agreement(seat);
  return n;
}

void Pool::give_to(Seat seat, const Owner& owner, std::string_view conversation) {
  at(seat).owner = owner;
  at(seat).conversation = conversation;
}

Reservation Pool::reserve(Seat seat, Tokens total) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::busy, "a promise to an empty chair");
  FERMATA_CHECK(state.promised == Tokens(0), "two promises to one seat");
  FERMATA_CHECK(total > Tokens(0), "a promise of nothing");
  state.promised = total;
  return Reservation(*this, seat);
}

void Pool::appended(Seat seat, std::span<const TokenId> tokens) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::busy, "rows of a seat that nobody has");
  const Tokens rows{static_cast<std::int64_t>(tokens.size())};
  if (rows == chunk_ && state.in_chunks == ledger_.length(seat)) state.in_chunks += rows;
  state.tokens.insert(state.tokens.end(), tokens.begin(), tokens.end());
  ledger_.append(seat, rows);
  rows_ += rows;
  check_agreement(seat);
}

void Pool::release(Seat seat, bool keep, Micros now) {
  SeatState& state = at(seat);
  FERMATA_CHECK(state.use == SeatUse::busy, "releasing a seat that nobody has");
  state.use = SeatUse::idle;
  state.last_used = now;
  state.rows_before = rows_;
  if (const Tokens kept = state.unshifted; keep && kept != everything) {
    const auto done = engine_.truncate(seat, kept);
    FERMATA_CHECK(done == engine::EditOutcome::done, "what can be shifted cannot be cut");
    cut(seat, kept);
  }
  state.is_kept = keeps_idle_ && ledger_.length(seat) >= cache_min_;
  align_mirror(state);
  if (!keep || state.tokens.empty()) {
    drop(seat);
  } else if (state.is_kept) {
    hold_mirror(state, Hold::cached);
  } else {
    state.mirror.clear();
  }
}

void Pool::evict(Seat seat) {
  FERMATA_CHECK(at(seat).use != SeatUse::busy, "evicting a seated sequence");
  shelve(seat);
  drop(seat);
}

void Pool::drop(Seat seat) {
  SeatState& state = at(seat);
  ++state.version;
  engine_.clear(seat);
  ledger_.clear(seat);
  state.tokens.clear();
  state.mirror.clear();
  state.in_chunks = Tokens(0);
  state.conversation.clear();
  state.unshifted = everything;
  state.use = SeatUse::empty;
}

void Pool::drop_everything() {
  for (std::int32_t s = 0; s < seats(); ++s) {
    const bool busy = at(Seat(s)).use == SeatUse::busy;
    drop(Seat(s));
    if (busy) at(Seat(s)).use = SeatUse::busy;
  }
}

void Pool::adopt(std::span<const Adopted> seats) {
  const std::int32_t count = engine_.limits().seats;
  Ledger ledger(count, engine_.capabilities().cells_per_token);
  std::vector<SeatState> states(static_cast<std::size_t>(count));
  for (const Adopted& seat : seats) {
    const Tokens length = ledger_.length(seat.from);
    if (seat.like) ledger.share(*seat.like, seat.to, seat.shared);
    ledger.append(seat.to, length - seat.shared);
    states[static_cast<std::size_t>(seat.to.value)] = std::move(at(seat.from));
    at(seat.from).use = SeatUse::empty;
  }
  for (const SeatState& state : seats_) {
    FERMATA_CHECK(state.use == SeatUse::empty, "a seat that is left behind holds something");
  }
  ledger_ = std::move(ledger);
  seats_ = std::move(states);
  can_restore_ = comes_back_alike(engine_, chunk_);
  keeps_idle_ = can_restore_ && has_shelf_;
  for (std::int32_t s = 0; s < count; ++s) check_agreement(Seat(s));
}

void Pool::check_agreement(Seat seat) const {
  FERMATA_CHECK(engine_.position(seat) == ledger_.length(seat), "engine and ledger disagree");
  FERMATA_CHECK(engine_.position(seat).value == static_cast<std::int64_t>(at(seat).tokens.size()),
                "engine and token list disagree");
}

}  // namespace fermata::kv
