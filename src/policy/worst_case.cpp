// The admission-only policy: a request starts when its worst case fits beside all others' worst
// cases, so nothing ever has to be taken back.
#include "policy/pace.h"
#include "policy/policy.h"

#include <algorithm>
#include <array>

namespace fermata::policy {
namespace {

// What would be left of the view if the plan so far were applied.
class Draft {
 public:
  Draft(const View& view, Plan& plan)
      : view_(view),
        plan_(plan),
        unpromised_(view.cells_unpromised),
        busy_(view.cells_busy),
        outstanding_(view.cells_outstanding) {
    for (const SeatView& seat : view.seats) {
      use_[index(seat.seat)] = seat.use;
      exclusive_[index(seat.seat)] = seat.exclusive;
    }
  }

  SeatUse use(Seat seat) const { return use_[index(seat)]; }
  const SeatView& seat_view(Seat seat) const { return view_.seats[index(seat)]; }

  // Nothing to lose first, then longest unused. Never `except`.
  std::optional<Seat> best_free_seat(std::optional<Seat> except) const {
    std::optional<Seat> best;
    for (const SeatView& seat : view_.seats) {
      if (use(seat.seat) == SeatUse::busy || seat.seat == except) continue;
      if (use(seat.seat) == SeatUse::empty) return seat.seat;
      if (!best || seat.last_used < seat_view(*best).last_used) best = seat.seat;
    }
    return best;
  }

  // Admits if the cells can be found, evicting idle seats as far as needed. False: nothing changed.
  bool admit(const WaitingView& waiting, const Admission& admission) {
    if (view_.layout == Layout::pooled && waiting.need > Tokens(0) &&
        !make_room(waiting, admission)) {
      return false;
    }
    const bool from_busy = admission.source && use(*admission.source) == SeatUse::busy;
    busy_ += from_busy ? Tokens(0) : std::min(admission.reuse, waiting.need);
    outstanding_ += std::max(waiting.need - admission.reuse, Tokens(0));
    use_[index(admission.seat)] = SeatUse::busy;
    if (admission.source) {
      // What two hold, dropping one of them does not free.
      Tokens& exclusive = exclusive_[index(*admission.source)];
      exclusive = std::min(exclusive, seat_view(*admission.source).length - admission.reuse);
      lends_[index(*admission.source)] = true;
    }
    plan_.admit.push_back(admission);
    return true;
  }

 private:
  static std::size_t index(Seat seat) { return static_cast<std::size_t>(seat.value); }

  bool make_room(const WaitingView& waiting, const Admission& admission) {
    const Tokens fresh = std::max(waiting.need - admission.reuse, Tokens(0));
    Tokens room = unpromised_ + freed_by_taking(admission);
    std::vector<Seat> victims;
    while (fresh > room) {
      const std::optional<Seat> victim = next_victim(admission, victims);
      if (!victim) break;
      room += exclusive_[index(*victim)];
      victims.push_back(*victim);
    }
    if (fresh > room) {
      // Idle seats may share cells with each other, which then count as exclusive to none of them.
      // With all of them gone the truth is plain: what is busy, promised or kept, nothing else.
      room = std::max(room, view_.cells - busy_ - outstanding_ - kept_of_idle(admission));
    }
    if (fresh > room) return false;
    for (Seat victim : victims) {
      plan_.evict.push_back(victim);
      use_[index(victim)] = SeatUse::empty;
    }
    unpromised_ = room - fresh;
    return true;
  }

  // Cells owned by one seat alone are always the end of it, since only prefixes are shared.
  Tokens freed_by_taking(const Admission& admission) const {
    if (use(admission.seat) != SeatUse::idle) return Tokens(0);
    const SeatView& seat = seat_view(admission.seat);
    const Tokens kept = admission.source ? Tokens(0) : admission.reuse;
    return std::min(exclusive_[index(admission.seat)], seat.length - kept);
  }

  // Cells that idle seats go on holding when all that may be evicted are, at most.
  Tokens kept_of_idle(const Admission& admission) const {
    Tokens kept = admission.source ? Tokens(0) : admission.reuse;
    for (const SeatView& seat : view_.seats) {
      if (use(seat.seat) != SeatUse::idle || seat.seat == admission.seat) continue;
      if (seat.seat == admission.source || lends_[index(seat.seat)]) kept += seat.length;
    }
    return kept;
  }

  std::optional<Seat> next_victim(const Admission& admission,
                                  const std::vector<Seat>& chosen) const {
    std::optional<Seat> best;
    for (const SeatView& seat : view_.seats) {
      // Evictions are applied before admissions: who lends cells in this plan must stay.
      if (use(seat.seat) != SeatUse::idle || lends_[index(seat.seat)]) continue;
      if (seat.seat == admission.seat || seat.seat == admission.source) continue;
      if (std::find(chosen.begin(), chosen.end(), seat.seat) != chosen.end()) continue;
      if (!best || seat.last_used < seat_view(*best).last_used) best = seat.seat;
    }
    return best;
  }

  const View& view_;
  Plan& plan_;
  std::array<SeatUse, n_parallel_max + 1> use_{};
  std::array<Tokens, n_parallel_max + 1> exclusive_{};
  std::array<bool, n_parallel_max + 1> lends_{};
  Tokens unpromised_, busy_, outstanding_;
};

struct Best {
  std::optional<Seat> own, source;
  Tokens own_tokens, shared_tokens;
};

Best best_prefixes(const WaitingView& waiting, const Draft& draft) {
  Best best;
  for (std::size_t s = 0; s < waiting.prefixes.size(); ++s) {
    const Seat seat{static_cast<std::int32_t>(s)};
    const SeatView& seen = draft.seat_view(seat);
    // A seat whose content this plan takes or drops has nothing to offer any more.
    if (seen.use != draft.use(seat)) continue;
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

// Whether a conversation that goes on from `kept` tokens of a seat loses little of the seat.
bool is_continuation(const SeatView& seat, Tokens kept) { return kept * 4 >= seat.length * 3; }

// The ways to seat a request, best first; the last resort computes everything anew.
std::vector<Admission> choices(const WaitingView& waiting, const Draft& draft) {
  std::vector<Admission> out;
  if (waiting.seat) {
    // What this plan evicted is nothing to start from.
    const bool untouched = draft.use(*waiting.seat) == draft.seat_view(*waiting.seat).use;
    const auto index = static_cast<std::size_t>(waiting.seat->value);
    if (untouched) {
      out.push_back({waiting.id, *waiting.seat, std::nullopt, waiting.prefixes[index].own});
    }
    out.push_back({waiting.id, *waiting.seat, std::nullopt, Tokens(0)});
    return out;
  }
  const Best best = best_prefixes(waiting, draft);
  const bool own_is_good = best.own && best.own_tokens >= best.shared_tokens;
  const std::optional<Seat> elsewhere = draft.best_free_seat(best.source);
  const bool keeps_tail = elsewhere && draft.use(*elsewhere) == SeatUse::empty;
  if (own_is_good && (is_continuation(draft.seat_view(*best.own), best.own_tokens) ||
                      best.shared_tokens < best.own_tokens || !keeps_tail)) {
    out.push_back({waiting.id, *best.own, std::nullopt, best.own_tokens});
  }
  if (best.source && elsewhere) {
    out.push_back({waiting.id, *elsewhere, best.source, best.shared_tokens});
  }
  if (best.own) out.push_back({waiting.id, *best.own, std::nullopt, best.own_tokens});
  if (const auto any = draft.best_free_seat(std::nullopt)) {
    out.push_back({waiting.id, *any, std::nullopt, Tokens(0)});
  }
  return out;
}

void plan_admissions(const View& view, Plan& plan) {
  Draft draft(view, plan);
  for (const WaitingView& waiting : view.waiting) {
    if (waiting.prefixes.empty()) continue;
    // Its seat is taken: others may go on, it is first again when the seat is free.
    if (waiting.seat && draft.use(*waiting.seat) == SeatUse::busy) continue;
    bool admitted = false;
    for (const Admission& choice : choices(waiting, draft)) {
      admitted = draft.admit(waiting, choice);
      if (admitted) break;
    }
    if (!admitted) return;  // Head of line: nobody passes, or the large ones would starve.
  }
}

void plan_rows(const View& view, Plan& plan) {
  Tokens left = view.batch_max;
  for (std::size_t i = 0; i < view.running.size() && left > Tokens(0); ++i) {
    const RunningView& running = view.running[i];
    if (running.phase != Phase::decode || running.blocked) continue;
    plan.run.push_back({i, Tokens(1)});
    left -= Tokens(1);
  }
  if (left == Tokens(0)) return;
  left = prefill_allowance(view.rates, view.step_budget, !plan.run.empty(), left);
  for (std::size_t i = 0; i < view.running.size() && left > Tokens(0); ++i) {
    const RunningView& running = view.running[i];
    if (running.phase != Phase::prefill || running.blocked) continue;
    const Tokens rows = std::min(left, running.prompt_left);
    plan.run.push_back({i, rows});
    left -= rows;
  }
}

}  // namespace

void plan_worst_case(const View& view, Plan& plan) {
  plan.clear();
  if (!view.waiting.empty()) plan_admissions(view, plan);
  plan_rows(view, plan);
}

}  // namespace fermata::policy
