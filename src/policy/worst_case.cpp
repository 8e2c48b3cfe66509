// The admission-only policy: a request starts when its worst case fits beside all others' worst
// cases, so nothing ever has to be taken back. Only a change of the geometry parks somebody, when a
// copy fails; who is parked comes back first, on the same terms.
#include "base/check.h"
#include "policy/copies.h"
#include "policy/policy.h"
#include "policy/rows.h"
#include "policy/seating.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace fermata::policy {
namespace {

// What would be left of the view if the plan so far were applied.
class Draft {
 public:
  Draft(const View& view, Plan& plan)
      : view_(view),
        plan_(plan),
        seats_(view),
        unpromised_(view.cells_unpromised),
        busy_(view.cells_busy),
        outstanding_(view.cells_outstanding) {}

  const SeatDraft& seats() const { return seats_; }

  // Whether there is a place for all of them once idle seats are gone.
  bool has_place(std::size_t seats, Tokens need) const {
    const bool counts = view_.layout == Layout::pooled && need > Tokens(0);
    return seats_.not_busy() >= seats && (!counts || need <= view_.cells - busy_ - outstanding_);
  }

  // REQUIRES: has_place(), counted over all that come in this plan.
  void resume(std::size_t parked) {
    const ParkedView& of = view_.parked[parked];
    const auto any = seats_.best_free_seat(std::nullopt);
    FERMATA_CHECK(of.seat || any, "nobody has made sure that there is a seat");
    const Seat seat = of.seat ? *of.seat : *any;
    drop(seat);
    while (view_.layout == Layout::pooled && unpromised_ < of.need) {
      const auto victim = seats_.oldest_idle(seat, std::nullopt, {});
      if (!victim) break;
      drop(*victim);
    }
    if (of.need > Tokens(0)) unpromised_ = std::max(unpromised_ - of.need, Tokens(0));
    outstanding_ += of.need;
    seats_.take({of.id, seat, std::nullopt, Tokens(0)});
    plan_.resume.push_back({parked, seat});
  }

  // Admits if the cells can be found, evicting idle seats as far as needed. False: nothing changed.
  bool admit(const WaitingView& waiting, const Admission& admission) {
    if (view_.layout == Layout::pooled && waiting.need > Tokens(0) &&
        !make_room(waiting, admission)) {
      return false;
    }
    const bool from_busy = admission.source && seats_.use(*admission.source) == SeatUse::busy;
    busy_ += from_busy ? Tokens(0) : std::min(reused_cells(admission), waiting.need);
    outstanding_ += std::max(waiting.need - reused_cells(admission), Tokens(0));
    seats_.take(admission);
    plan_.admit.push_back(admission);
    return true;
  }

 private:
  // What the shelf gives takes new cells.
  static Tokens reused_cells(const Admission& admission) {
    return admission.fetched > Tokens(0) ? Tokens(0) : admission.reuse;
  }

  void drop(Seat seat) {
    if (seats_.use(seat) != SeatUse::idle) return;
    plan_.evict.push_back(seat);
    unpromised_ += seats_.exclusive(seat);
    seats_.empty(seat);
  }

  bool make_room(const WaitingView& waiting, const Admission& admission) {
    const Tokens fresh = std::max(waiting.need - reused_cells(admission), admission.fetched);
    Tokens room = unpromised_ + freed_by_taking(admission);
    std::vector<Seat> victims;
    while (fresh > room) {
      const auto victim = seats_.oldest_idle(admission.seat, admission.source, victims);
      if (!victim) break;
      room += seats_.exclusive(*victim);
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
      seats_.empty(victim);
    }
    unpromised_ = room - fresh;
    return true;
  }

  // Cells owned by one seat alone are always the end of it, since only prefixes are shared.
  Tokens freed_by_taking(const Admission& admission) const {
    if (seats_.use(admission.seat) != SeatUse::idle) return Tokens(0);
    const SeatView& seat = seats_.view(admission.seat);
    const Tokens kept = admission.source ? Tokens(0) : reused_cells(admission);
    return std::min(seats_.exclusive(admission.seat), seat.length - kept);
  }

  // Cells that idle seats go on holding when all that may be evicted are, at most.
  Tokens kept_of_idle(const Admission& admission) const {
    Tokens kept = admission.source ? Tokens(0) : reused_cells(admission);
    for (const SeatView& seat : view_.seats) {
      if (seats_.use(seat.seat) != SeatUse::idle || seat.seat == admission.seat) continue;
      if (seat.seat == admission.source || seats_.lends(seat.seat)) kept += seat.length;
    }
    return kept;
  }

  const View& view_;
  Plan& plan_;
  SeatDraft seats_;
  Tokens unpromised_, busy_, outstanding_;
};

std::vector<std::size_t> by_priority(std::span<const ParkedView> parked) {
  std::vector<std::size_t> out(parked.size());
  std::iota(out.begin(), out.end(), 0);
  std::ranges::stable_sort(out, std::greater(), [&](std::size_t i) { return parked[i].priority; });
  return out;
}

// By priority, then by the time of parking, those of one request together. False: somebody has to
// wait, and nobody may pass.
bool plan_resumes(const View& view, Draft& draft) {
  std::vector<GroupId> seen;
  for (const std::size_t first : by_priority(view.parked)) {
    const GroupId group = view.parked[first].group;
    if (group != GroupId() && std::ranges::find(seen, group) != seen.end()) continue;
    seen.push_back(group);
    std::vector<std::size_t> unit;
    Tokens need{0};
    bool is_free = true;
    for (std::size_t p = 0; p < view.parked.size(); ++p) {
      const ParkedView& parked = view.parked[p];
      if (p != first && (group == GroupId() || parked.group != group)) continue;
      unit.push_back(p);
      need += parked.need;
      is_free = is_free && !parked.held &&
                (!parked.seat || draft.seats().use(*parked.seat) != SeatUse::busy);
    }
    if (!is_free) continue;
    if (!draft.has_place(unit.size(), need)) {
      // Choices that do not fit together any more come in part, with the pool to themselves.
      const bool is_alone = draft.seats().not_busy() == view.seats.size();
      for (const std::size_t parked : unit) {
        if (is_alone && draft.has_place(1, view.parked[parked].need)) draft.resume(parked);
      }
      return false;
    }
    for (const std::size_t parked : unit) draft.resume(parked);
  }
  return true;
}

void plan_admissions(const View& view, Draft& draft) {
  for (const WaitingView& waiting : view.waiting) {
    if (waiting.prefixes.empty() || waiting.awaits_prompt) continue;
    // Its seat is taken: others may go on, it is first again when the seat is free.
    if (waiting.seat && draft.seats().use(*waiting.seat) == SeatUse::busy) continue;
    bool admitted = false;
    for (const Admission& choice : choices(waiting, draft.seats())) {
      admitted = draft.admit(waiting, choice);
      if (admitted) break;
    }
    if (!admitted) return;  // Head of line: nobody passes, or the large ones would starve.
  }
}

}  // namespace

void plan_worst_case(const View& view, Plan& plan) {
  plan.clear();
  if (view.no_room > 0) {  // Something is miscounted: cells that serve nobody go first.
    for (const SeatView& seat : view.seats) {
      if (seat.use == SeatUse::idle) plan.evict.push_back(seat.seat);
    }
  } else if (!view.waiting.empty() || !view.parked.empty()) {
    Draft draft(view, plan);
    if (plan_resumes(view, draft)) plan_admissions(view, draft);
  }
  plan_rows(view, view.batch_max, plan);  // What was promised is there.
  plan_clearing(view, plan);
  plan_copies(view, plan);
}

}  // namespace fermata::policy
