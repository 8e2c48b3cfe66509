// The preempting policy: more is admitted than fits in the worst case, and parked when cells run
// out. See docs/design/preemption.md for the rules and where they come from.
#include "policy/copies.h"
#include "policy/policy.h"
#include "policy/rows.h"
#include "policy/seating.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace fermata::policy {
namespace {

// Parked so often already: others go first while there are any.
constexpr std::int32_t spared_after_parks = 3;
// Of the cells, held by busy seats: blocks are mirrored from here on.
constexpr std::int64_t mirror_above_percent = 70;

Tokens quantum_of(Tokens remaining, Tokens quantum) {
  return remaining < Tokens(0) ? quantum : std::min(remaining, quantum);
}

// Who was let in last, or found no place.
struct Stuck {
  std::int32_t priority = 0;
  Tokens wanted;
  std::optional<Micros> parked_for;  // None: it waits in the queue.
  GroupId group{};
};

// One plan in the making.
class Draft {
 public:
  Draft(const View& view, Plan& plan)
      : view_(view),
        plan_(plan),
        seats_(view),
        bounded_(view.layout == Layout::pooled && view.cells_per_token),
        freed_(view.cells_free),
        ram_left_(view.ram_left),
        slower_left_(view.slower_left),
        left_(view.running.size(), false),
        back_(view.parked.size(), false) {
    for (const SeatView& seat : view.seats) idle_ += seat.use == SeatUse::idle;
  }

  void force_parks() {
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      const RunningView& running = view_.running[i];
      if (running.held) park(i, ParkReason::manual);
      if (view_.preempt.every <= Tokens(0) || running.phase != Phase::decode) continue;
      if (running.since_start >= view_.preempt.every) park(i, ParkReason::forced);
    }
  }

  void last_resort() {
    if (view_.no_room == 0) return;
    while (evict_one(std::nullopt)) {
    }
    if (const auto victim = pick_victim()) leave(*victim, ParkReason::last_resort);
  }

  void park_until_rows_fit() {
    if (!bounded_ || !view_.preempt.planner) return;
    while (next_rows() > room()) {
      if (evict_one(std::nullopt)) continue;
      const std::optional<Unit> victim = pick_victim();
      if (!victim) return;
      leave(*victim, ParkReason::pressure);
    }
  }

  // By priority, then who is parked before who waits; nobody passes one that finds no place.
  // Whether everybody who could came in.
  bool let_in() {
    const std::vector<std::size_t> order = resume_order();
    auto back = order.begin();
    auto waiting = view_.waiting.begin();
    const auto has_seat = [&](std::optional<Seat> seat) {
      return !seat || seats_.use(*seat) != SeatUse::busy;
    };
    while (true) {
      const auto may_return = [&](std::size_t q) {
        const ParkedView& parked = view_.parked[q];
        return !parked.blocked && !parked.held && has_seat(parked.seat);
      };
      back = std::find_if(back, order.end(), [&](std::size_t p) {
        if (back_[p] || !may_return(p)) return false;
        const Unit together = parked_with(p);
        return std::all_of(together.begin(), together.end(), may_return);
      });
      waiting = std::find_if(waiting, view_.waiting.end(), [&](const WaitingView& w) {
        return !w.held && !w.awaits_prompt && has_seat(w.seat);
      });
      const bool any_waits = waiting != view_.waiting.end();
      if (back == order.end() && !any_waits) return true;
      if (back != order.end() &&
          (!any_waits || view_.parked[*back].priority >= waiting->priority)) {
        if (!plan_.admit.empty()) return true;  // In the next tick: it may need a lender's seat.
        if (!resume_somehow(*back++)) return !plan_.fetch.empty();
      } else {
        stuck_ = {waiting->priority, waiting->prompt, std::nullopt, waiting->group};
        if (!admit_somewhere(*waiting++)) return false;
      }
    }
  }

  // Somebody is kept out. Who has not read for long gives way; so does whoever had its quantum or
  // does not read now, at once to higher priority, else after a long wait: lowest priority first,
  // then the smallest that makes enough room, else the largest.
  void make_place() {
    const bool waited = stuck_.parked_for && *stuck_.parked_for >= view_.preempt.rotate_after;
    const bool apart = is_alone_in_pool(stuck_.group);
    const auto rank = [&](const Unit& unit) {
      const RunningView& running = view_.running[unit.front()];
      const Tokens cells = freed_by(unit);
      const bool enough = cells >= stuck_.wanted;
      return std::tuple(!running.blocked, running.priority, !enough,
                        enough ? cells : Tokens(0) - cells);
    };
    const auto may_leave = [&](std::size_t i) {
      const RunningView& running = view_.running[i];
      const bool had_its_turn =
          running.phase == Phase::decode && running.since_start >= turn_of(running);
      const bool gives_way =
          running.priority < stuck_.priority || (waited && running.priority == stuck_.priority);
      const bool does_not_read =
          running.blocked && (gives_way || running.blocked_for >= view_.preempt.rotate_after);
      if (!does_not_read && !(had_its_turn && gives_way)) return false;
      return !seats_.lends(running.seat);  // Nobody was just seated on its cells.
    };
    Unit best;
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      if (!may_leave(i)) continue;
      Unit unit = unit_of(i, apart);
      if (!std::all_of(unit.begin(), unit.end(), may_leave)) continue;
      if (best.empty() || rank(unit) < rank(best)) best = std::move(unit);
    }
    if (best.empty()) return;
    const RunningView& running = view_.running[best.front()];
    const bool displaced = running.priority < stuck_.priority;
    leave(best, running.blocked ? ParkReason::unread
                : displaced     ? ParkReason::priority
                                : ParkReason::rotation);
  }

  // Blocks of those who would be parked first. Not in a tick that moves sequences anyhow.
  void mirror() {
    const bool moves = !plan_.park.empty() || !plan_.resume.empty();
    if (view_.blocks_max <= 0 || moves || !bounded_ || !is_pressed()) return;
    std::vector<Tokens> mirrored;
    for (const RunningView& running : view_.running) mirrored.push_back(running.mirrored);
    std::optional<Bytes> left = view_.mirror_ram_left;
    const std::optional<std::size_t> leader = pick_leader();
    while (plan_.mirror.size() < static_cast<std::size_t>(view_.blocks_max)) {
      std::optional<std::size_t> best;
      const auto rank = [&](std::size_t i) { return std::tuple(i == leader, victim_rank(i)); };
      for (std::size_t i = 0; i < view_.running.size(); ++i) {
        if (left_[i] || next_block_end(mirrored[i], view_.block) > cells_of(i)) continue;
        if (!best || rank(i) < rank(*best)) best = i;
      }
      if (!best) return;
      const Tokens block = next_block_end(mirrored[*best], view_.block) - mirrored[*best];
      const Bytes bytes = view_.bytes_per_token * block.value;
      if (left && bytes > *left) return;
      if (left) *left -= bytes;
      mirrored[*best] += block;
      plan_.mirror.push_back({*best});
    }
  }

  // Steps get shorter while they find no cells.
  Tokens rows_max() const {
    const Tokens most = view_.preempt.planner ? room() : view_.batch_max;
    if (view_.no_room == 0 || view_.chunk > Tokens(0)) return most;  // Pieces keep their size.
    const Tokens fewer = view_.batch_max / (std::int64_t{1} << std::min(view_.no_room, 20));
    return std::min(most, std::max(fewer, Tokens(1)));
  }

  // Cells that are free for certain once the plan is applied. Where seats share cells with each
  // other the truth may be more: the next tick sees it.
  Tokens room() const {
    if (!bounded_) return view_.batch_max;
    if (idle_ > 0) return freed_ - taken_;
    return std::max(freed_, view_.cells - view_.cells_busy + freed_by_parks_) - taken_;
  }

 private:
  using Unit = std::vector<std::size_t>;  // Indices of those who move together, in their order.

  // Who runs and leaves with i. `apart`: nobody.
  Unit unit_of(std::size_t i, bool apart) const {
    const GroupId group = view_.running[i].group;
    if (group == GroupId() || apart) return {i};
    Unit out;
    for (std::size_t j = 0; j < view_.running.size(); ++j) {
      if (!left_[j] && view_.running[j].group == group) out.push_back(j);
    }
    return out;
  }

  // Who is parked and comes back with p.
  Unit parked_with(std::size_t p) const {
    const GroupId group = view_.parked[p].group;
    if (group == GroupId()) return {p};
    Unit out;
    for (std::size_t q = 0; q < view_.parked.size(); ++q) {
      if (!back_[q] && view_.parked[q].group == group) out.push_back(q);
    }
    return out;
  }

  // Whether nobody of another group runs: then those of this one move one by one, since together
  // they may be more than fit.
  bool is_alone_in_pool(GroupId group) const {
    if (group == GroupId() || !plan_.admit.empty()) return false;
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      if (!left_[i] && view_.running[i].group != group) return false;
    }
    return std::all_of(plan_.resume.begin(), plan_.resume.end(), [&](const Resume& resume) {
      return view_.parked[resume.parked].group == group;
    });
  }

  // Of cells. What a group shares counts once, and is free when all of it leave.
  Tokens freed_by(const Unit& unit) const {
    const RunningView& running = view_.running[unit.front()];
    return leaves_whole(unit) ? running.together : seats_.exclusive(running.seat);
  }
  bool leaves_whole(const Unit& unit) const {
    const GroupId group = view_.running[unit.front()].group;
    if (group == GroupId()) return false;
    const auto n = std::count_if(view_.running.begin(), view_.running.end(),
                                 [&](const RunningView& r) { return r.group == group; });
    return unit.size() == static_cast<std::size_t>(n);
  }

  // Tokens that a sequence is left before another gets its place. Where coming back is a replay, at
  // least as long as that takes, so that no more than half of the time goes to replays.
  Tokens turn_of(const RunningView& running) const {
    const Tokens cells = seats_.view(running.seat).length;
    if (would_swap(cells)) return view_.preempt.quantum;
    if (view_.chunk > Tokens(0)) return std::max(view_.preempt.quantum, cells);  // Row by row.
    const std::int64_t step_us = view_.rates.decode_step.value;
    const std::int64_t replay_us = cells.value * view_.rates.prefill_per_1k.value / 1000;
    return std::max(view_.preempt.quantum, step_us > 0 ? Tokens(replay_us / step_us) : cells);
  }

  bool is_alone() const {
    return plan_.resume.empty() && plan_.admit.empty() &&
           std::find(left_.begin(), left_.end(), false) == left_.end();
  }

  // Cells that the next step would take if everybody ran.
  Tokens next_rows() const {
    Tokens decode{0}, prefill{0};
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      const RunningView& running = view_.running[i];
      if (left_[i] || running.blocked) continue;
      decode += running.phase == Phase::decode ? Tokens(1) : Tokens(0);
      prefill += running.rows_left;
    }
    return decode + std::min(prefill, std::max(view_.batch_max - decode, Tokens(0)));
  }

  // Cells that all who run or come in may take within a quantum.
  Tokens growth() const {
    Tokens out = coming_;
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      if (left_[i]) continue;
      const RunningView& running = view_.running[i];
      out += running.rows_left + quantum_of(running.remaining, view_.preempt.quantum);
    }
    return out;
  }

  // Cells that could be free for somebody who takes `seat`, keeping so many of its tokens, or the
  // first ones of `source`: with all other idle seats evicted.
  Tokens available(Seat seat, std::optional<Seat> source, Tokens kept) const {
    Tokens evicted = freed_by_taking(seat, kept), stay = kept;
    for (const SeatView& idle : view_.seats) {
      if (seats_.use(idle.seat) != SeatUse::idle || idle.seat == seat) continue;
      if (idle.seat == source || seats_.lends(idle.seat)) {
        stay += idle.length;
      } else {
        evicted += seats_.exclusive(idle.seat);
      }
    }
    // Idle seats may share cells with each other, which then count as exclusive to none of them.
    return std::max(room() + evicted,
                    view_.cells - view_.cells_busy + freed_by_parks_ - taken_ - stay);
  }

  Tokens freed_by_taking(Seat seat, Tokens kept) const {
    if (seats_.use(seat) != SeatUse::idle) return Tokens(0);
    return std::min(seats_.exclusive(seat), seats_.view(seat).length - kept);
  }

  void evict(Seat seat) {
    freed_ += seats_.exclusive(seat);
    --idle_;
    seats_.empty(seat);
    plan_.evict.push_back(seat);
  }

  bool evict_one(std::optional<Seat> except) {
    const auto oldest = seats_.oldest_idle(except, std::nullopt, {});
    if (oldest) evict(*oldest);
    return oldest.has_value();
  }

  void park(std::size_t i, ParkReason reason) {
    if (!left_[i]) leave(unit_of(i, false), reason);
  }

  void leave(const Unit& unit, ParkReason reason) {
    const Tokens freed = freed_by(unit);
    freed_ += freed;
    freed_by_parks_ += freed;
    const ParkMode mode = mode_for(unit);
    for (const std::size_t i : unit) {
      left_[i] = true;
      seats_.empty(view_.running[i].seat);
      if (view_.preempt.enabled) {
        // Where there is nothing to keep, nothing is computed again.
        plan_.park.push_back({i, cells_of(i) == Tokens(0) ? ParkMode::swap : mode, reason});
      } else {
        plan_.fail.push_back(i);
      }
    }
  }

  ParkMode mode_for(const Unit& unit) {
    Bytes bytes{0};
    for (const std::size_t i : unit) {
      const Tokens shared = leaves_whole(unit) ? view_.running[i].shared : Tokens(0);
      if (cells_of(i) > Tokens(0)) bytes += bytes_of(cells_of(i) - shared);
    }
    if (bytes == Bytes(0)) return ParkMode::swap;
    if (!view_.can_swap) return ParkMode::recompute;
    if (ram_left_ && bytes > *ram_left_) {
      if (bytes > slower_left_) return ParkMode::recompute;
      slower_left_ -= bytes;
    } else if (ram_left_) {
      *ram_left_ -= bytes;
    }
    return ParkMode::swap;
  }

  Bytes bytes_of(Tokens cells) const {
    return view_.bytes_per_sequence + view_.bytes_per_token * cells.value;
  }
  bool would_swap(Tokens cells) const {
    return view_.can_swap && (!ram_left_ || bytes_of(cells) <= std::max(*ram_left_, slower_left_));
  }

  // Who holds the most and can run.
  std::optional<std::size_t> pick_leader() const {
    std::optional<std::size_t> leader;
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      if (left_[i] || view_.running[i].blocked) continue;
      if (!leader || cells_of(i) > cells_of(*leader)) leader = i;
    }
    return leader;
  }

  // Whether a park is to be expected.
  bool is_pressed() const {
    const auto wants_back = [](const ParkedView& parked) { return !parked.held; };
    if (view_.preempt.every > Tokens(0) ||
        std::any_of(view_.parked.begin(), view_.parked.end(), wants_back)) {
      return true;
    }
    return view_.running.size() > 1 &&
           view_.cells_busy.value * 100 >= view_.cells.value * mirror_above_percent;
  }

  // The leader stays, so that somebody always advances; and its group, while anybody else runs.
  std::optional<Unit> pick_victim() const {
    const std::optional<std::size_t> leader = pick_leader();
    const GroupId its_group = leader ? view_.running[*leader].group : GroupId();
    const bool apart = is_alone_in_pool(its_group);
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      const GroupId group = view_.running[i].group;
      if (left_[i] || i == leader || (group != GroupId() && group == its_group && !apart)) continue;
      if (!best || victim_rank(i) < victim_rank(*best)) best = i;
    }
    if (!best) return std::nullopt;
    return unit_of(*best, apart);
  }

  Tokens cells_of(std::size_t i) const { return seats_.view(view_.running[i].seat).length; }

  // Microseconds to take it out and bring it back, for each cell that this frees.
  std::int64_t price_of(std::size_t i) const {
    const std::int64_t freed = seats_.exclusive(view_.running[i].seat).value;
    if (freed == 0) return std::numeric_limits<std::int64_t>::max();
    const Tokens cells = cells_of(i);
    if (!would_swap(cells)) {
      return cells.value * view_.rates.prefill_per_1k.value / 1000 / freed;
    }
    // What is mirrored is out already.
    const Bytes moved = bytes_of(cells) + bytes_of(cells - view_.running[i].mirrored);
    return (moved.value * view_.rates.move_per_mib.value >> 20) / freed;
  }

  // Smaller goes first; among equals the smallest sequence.
  std::tuple<bool, std::int32_t, bool, std::int64_t, Tokens> victim_rank(std::size_t i) const {
    const RunningView& running = view_.running[i];
    const bool spared = running.replaying || running.parks >= spared_after_parks;
    std::int64_t order = 0;
    switch (view_.preempt.victim) {
      case Victim::smallest:
        order = cells_of(i).value;
        break;
      case Victim::largest:
        order = -cells_of(i).value;
        break;
      case Victim::oldest:
        order = static_cast<std::int64_t>(i);
        break;
      case Victim::youngest:
        order = -static_cast<std::int64_t>(i);
        break;
      case Victim::cost:
        order = price_of(i);
        break;
    }
    return {!running.blocked, running.priority, spared, order, cells_of(i)};
  }

  std::vector<std::size_t> resume_order() const {
    std::vector<std::size_t> order(view_.parked.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return view_.parked[a].priority > view_.parked[b].priority;
    });
    return order;
  }

  // With the others of its group or, when nobody else is in the pool and that does not fit,
  // without. Bytes that are not in RAM come first: the others wait for that.
  bool resume_somehow(std::size_t p) {
    const ParkedView& parked = view_.parked[p];
    stuck_ = {parked.priority, Tokens(0), view_.now - parked.parked_at, parked.group};
    const Unit together = parked_with(p);
    if (resume_all(together)) return true;
    if (plan_.fetch.empty() && *stuck_.parked_for * 2 >= view_.preempt.rotate_after) {
      fetch(together);  // It will get somebody's place soon.
    }
    if (!plan_.fetch.empty()) return false;
    if (together.size() == 1 || !is_alone_in_pool(parked.group)) return false;
    return std::all_of(together.begin(), together.end(),
                       [this](std::size_t q) { return resume_all({q}); });
  }

  bool resume_all(const Unit& unit) {
    Tokens cells{0}, replayed{0}, ahead{0};
    for (const std::size_t p : unit) {
      const ParkedView& parked = view_.parked[p];
      const Tokens shared = unit.size() > 1 ? parked.shared : Tokens(0);
      (parked.mode == ParkMode::swap ? cells : replayed) += parked.cells - shared;
      ahead += parked.rows_left + quantum_of(parked.remaining, view_.preempt.quantum);
    }
    stuck_.wanted = cells + replayed;
    if (seats_.not_busy() < unit.size()) return false;
    if (bounded_) {
      const Tokens one_each(static_cast<std::int64_t>(unit.size()));
      const Tokens need = cells + replayed + (is_alone() ? one_each : ahead + growth());
      const auto any = seats_.best_free_seat(std::nullopt);
      if (need > available(*any, std::nullopt, Tokens(0))) return false;
    }
    if (fetch(unit)) return false;
    for (const std::size_t p : unit) {
      const ParkedView& parked = view_.parked[p];
      const Seat seat = parked.seat ? *parked.seat : *seats_.best_free_seat(std::nullopt);
      if (seats_.use(seat) == SeatUse::idle) evict(seat);
      seats_.take({parked.id, seat, std::nullopt, Tokens(0)});
      plan_.resume.push_back({p, seat});
      back_[p] = true;
    }
    while (bounded_ && cells > room() && evict_one(std::nullopt)) {
    }
    taken_ += cells;
    coming_ += ahead + replayed;
    return true;
  }

  // Whether any of them is out of RAM.
  bool fetch(const Unit& unit) {
    for (const std::size_t p : unit) {
      if (view_.parked[p].away) plan_.fetch.push_back(p);
    }
    return !plan_.fetch.empty();
  }

  bool admit_somewhere(const WaitingView& waiting) {
    if (waiting.prefixes.empty()) return false;  // More than there are seats.
    for (const Admission& choice : choices(waiting, seats_)) {
      if (admit_one(waiting, choice)) return true;
    }
    return false;
  }

  bool admit_one(const WaitingView& waiting, const Admission& choice) {
    const Tokens fresh = waiting.prompt - choice.reuse;
    const Tokens ahead = fresh + quantum_of(waiting.remaining, view_.preempt.quantum);
    const bool fetches = choice.fetched > Tokens(0);
    const Tokens kept = choice.source || fetches ? Tokens(0) : choice.reuse;
    if (bounded_) {
      Tokens need = is_alone() ? fresh : ahead + growth();
      if (fetches) need = std::max(need + choice.reuse, choice.fetched);
      if (need > available(choice.seat, choice.source, kept)) return false;
    }
    if (seats_.use(choice.seat) == SeatUse::idle) {
      freed_ += freed_by_taking(choice.seat, kept);
      // The bound that holds without idle seats does not know what this one keeps.
      freed_by_parks_ += Tokens(0) - seats_.view(choice.seat).length;
      --idle_;
    }
    coming_ += ahead;
    seats_.take(choice);
    plan_.admit.push_back(choice);
    while (bounded_ && choice.fetched > room() && evict_one(std::nullopt)) {
    }
    if (fetches) taken_ += choice.reuse;
    return true;
  }

  const View& view_;
  Plan& plan_;
  SeatDraft seats_;
  const bool bounded_;
  Tokens freed_;              // Free now, and what leaving seats held alone.
  Tokens freed_by_parks_{0};  // Of it, by busy seats.
  Tokens taken_{0};           // By what is swapped in.
  Tokens coming_{0};          // What those who come in may take within a quantum.
  std::optional<Bytes> ram_left_;
  Bytes slower_left_;
  std::vector<bool> left_;  // By index into View::running.
  std::vector<bool> back_;  // By index into View::parked.
  Stuck stuck_;
  int idle_ = 0;
};

}  // namespace

void plan_preempting(const View& view, Plan& plan) {
  plan.clear();
  Draft draft(view, plan);
  draft.force_parks();
  draft.last_resort();
  draft.park_until_rows_fit();
  if (plan.park.empty() && plan.fail.empty() && (!view.parked.empty() || !view.waiting.empty())) {
    const bool everybody = draft.let_in();
    if (!everybody && view.preempt.enabled) draft.make_place();
  }
  plan_rows(view, draft.rows_max(), plan);
  draft.mirror();
  plan_clearing(view, plan);
  plan_copies(view, plan);
}

}  // namespace fermata::policy
