#include "policy/seating.h"

#include <algorithm>

namespace fermata::policy {
namespace {

struct Best {
  std::optional<Seat> own, source;
  Tokens own_tokens, shared_tokens;
};

Best best_prefixes(const WaitingView& waiting, const SeatDraft& seats) {
  Best best;
  for (std::size_t s = 0; s < waiting.prefixes.size(); ++s) {
    const Seat seat{static_cast<std::int32_t>(s)};
    const SeatView& seen = seats.view(seat);
    // A seat whose content this plan takes or drops has nothing to offer any more.
    if (seen.use != seats.use(seat)) continue;
    const PrefixView& prefix = waiting.prefixes[s];
    if (seen.use != SeatUse::busy && prefix.own > best.own_tokens) {
      best.own = seat;
      best.own_tokens = prefix.own;
    }
    if (prefix.shareable > best.shared_tokens) {
      best.source = seat;
      best.shared_tokens = prefix.shareable;
    }
  }
  return best;
}

// Fewer tokens more than a seat could spare are computed rather than brought back.
constexpr Tokens worth_fetching{16};

}  // namespace

SeatDraft::SeatDraft(const View& view) : view_(view) {
  for (const SeatView& seat : view.seats) {
    use_[index(seat.seat)] = seat.use;
    exclusive_[index(seat.seat)] = seat.exclusive;
  }
}

std::size_t SeatDraft::not_busy() const {
  return static_cast<std::size_t>(
      std::count_if(view_.seats.begin(), view_.seats.end(),
                    [&](const SeatView& seat) { return use(seat.seat) != SeatUse::busy; }));
}

std::optional<Seat> SeatDraft::best_free_seat(std::optional<Seat> except) const {
  std::optional<Seat> best;
  for (const SeatView& seat : view_.seats) {
    if (use(seat.seat) == SeatUse::busy || seat.seat == except) continue;
    if (use(seat.seat) == SeatUse::empty) return seat.seat;
    if (!best || seat.last_used < view(*best).last_used) best = seat.seat;
  }
  return best;
}

std::optional<Seat> SeatDraft::oldest_idle(std::optional<Seat> except, std::optional<Seat> nor,
                                           const std::vector<Seat>& chosen) const {
  std::optional<Seat> best;
  for (const SeatView& seat : view_.seats) {
    if (use(seat.seat) != SeatUse::idle || lends(seat.seat)) continue;
    if (seat.seat == except || seat.seat == nor) continue;
    if (std::find(chosen.begin(), chosen.end(), seat.seat) != chosen.end()) continue;
    if (!best || seat.last_used < view(*best).last_used) best = seat.seat;
  }
  return best;
}

void SeatDraft::take(const Admission& admission) {
  use_[index(admission.seat)] = SeatUse::busy;
  if (!admission.source) return;
  // What two hold, dropping one of them does not free.
  Tokens& exclusive = exclusive_[index(*admission.source)];
  exclusive = std::min(exclusive, view(*admission.source).length - admission.reuse);
  lends_[index(*admission.source)] = true;
}

std::vector<Admission> choices(const WaitingView& waiting, const SeatDraft& seats) {
  std::vector<Admission> out;
  const ShelfView& shelf = waiting.shelf;
  if (waiting.seat) {
    const PrefixView& prefix = waiting.prefixes[static_cast<std::size_t>(waiting.seat->value)];
    if (shelf.reuse >= prefix.own + worth_fetching) {
      out.push_back({waiting.id, *waiting.seat, std::nullopt, shelf.reuse, shelf.cells});
    }
    // What this plan evicted is nothing to start from.
    const bool untouched = seats.use(*waiting.seat) == seats.view(*waiting.seat).use;
    const auto index = static_cast<std::size_t>(waiting.seat->value);
    if (untouched) {
      out.push_back({waiting.id, *waiting.seat, std::nullopt, waiting.prefixes[index].own});
    }
    out.push_back({waiting.id, *waiting.seat, std::nullopt, Tokens(0)});
    return out;
  }
  const Best best = best_prefixes(waiting, seats);
  const auto any = seats.best_free_seat(std::nullopt);
  if (any && shelf.reuse >= std::max(best.own_tokens, best.shared_tokens) + worth_fetching) {
    out.push_back({waiting.id, *any, std::nullopt, shelf.reuse, shelf.cells});
  }
  const bool own_is_good = best.own && best.own_tokens >= best.shared_tokens;
  const std::optional<Seat> elsewhere = seats.best_free_seat(best.source);
  const bool keeps_tail = elsewhere && seats.use(*elsewhere) == SeatUse::empty;
  if (own_is_good && (goes_on(seats.view(*best.own).length, best.own_tokens) ||
                      best.shared_tokens < best.own_tokens || !keeps_tail)) {
    out.push_back({waiting.id, *best.own, std::nullopt, best.own_tokens});
  }
  if (best.source && elsewhere) {
    out.push_back({waiting.id, *elsewhere, best.source, best.shared_tokens});
  }
  if (best.own) out.push_back({waiting.id, *best.own, std::nullopt, best.own_tokens});
  if (any) out.push_back({waiting.id, *any, std::nullopt, Tokens(0)});
  return out;
}

}  // namespace fermata::policy
