#include "policy/policy.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <set>

namespace fermata::policy {
namespace {

using SeatBits = std::bitset<n_parallel_max + 1>;

std::string seat_name(Seat seat) { return "seat " + std::to_string(seat.value); }

class Checker {
 public:
  explicit Checker(const View& view) : view_(view) {}

  std::optional<std::string> evictions(const Plan& plan) {
    for (Seat seat : plan.evict) {
      if (!exists(seat)) return "evicts " + seat_name(seat) + ", which does not exist";
      if (view(seat).use != SeatUse::idle) return "evicts " + seat_name(seat) + ", not idle";
      if (gone_.test(bit(seat))) return "evicts " + seat_name(seat) + " twice";
      gone_.set(bit(seat));
    }
    return std::nullopt;
  }

  std::optional<std::string> admissions(const Plan& plan) {
    std::vector<RequestId> seen;
    for (const Admission& admission : plan.admit) {
      if (std::find(seen.begin(), seen.end(), admission.id) != seen.end()) {
        return "admits one request twice";
      }
      seen.push_back(admission.id);
      if (auto fault = one(admission)) return fault;
    }
    if (!view_.overcommit && view_.layout == Layout::pooled && fresh_ > Tokens(0) &&
        least_committed() > view_.cells) {
      return "promises more cells than the pool can free";
    }
    return std::nullopt;
  }

  std::optional<std::string> rows(const Plan& plan) const {
    Tokens total{0};
    std::vector<bool> seen(view_.running.size(), false);
    for (const Run& run : plan.run) {
      if (run.running >= view_.running.size()) return "runs what is not running";
      if (seen[run.running]) return "runs one sequence twice";
      seen[run.running] = true;
      if (left_.contains(run.running)) return "runs what it parks";
      const RunningView& running = view_.running[run.running];
      if (running.blocked) return "runs a sequence whose client does not read";
      const Tokens most = running.phase == Phase::decode ? Tokens(1) : running.rows_left;
      if (run.rows < Tokens(1) || run.rows > most) return "runs rows that a sequence does not have";
      if (!keeps_shape(running, run.rows)) return "runs rows in another shape than alone";
      total += run.rows;
    }
    if (total > view_.batch_max) return "runs more rows than a step may have";
    const bool bounded = view_.overcommit && view_.preempt.planner &&
                         view_.layout == Layout::pooled && view_.cells_per_token;
    if (bounded && total + swapped_in_ > most_free()) return "runs more rows than cells are free";
    return std::nullopt;
  }

  std::optional<std::string> parks(const Plan& plan) {
    Bytes bytes{0};
    for (const Park& park : plan.park) {
      if (auto fault = leave(park.running)) return fault;
    }
    for (const Park& park : plan.park) {
      const RunningView& running = view_.running[park.running];
      const Tokens cells = view(running.seat).length;
      if (park.mode == ParkMode::recompute || cells == Tokens(0)) continue;
      const Tokens shared = leaves_whole(running.group) ? running.shared : Tokens(0);
      bytes += view_.bytes_per_sequence + view_.bytes_per_token * (cells - shared).value;
    }
    for (std::size_t running : plan.fail) {
      if (auto fault = leave(running)) return fault;
    }
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      if (view_.running[i].held && !left_.contains(i)) return "leaves in the pool what is held";
      const GroupId group = view_.running[i].group;
      const bool is_parted = left_.contains(i) && !leaves_whole(group);
      if (group != GroupId() && is_parted && !is_left_alone(group))
        return "parks a part of a group";
    }
    if (bytes > Bytes(0) && !view_.can_swap) return "swaps what cannot be moved";
    if (view_.ram_left && bytes > std::max(*view_.ram_left, Bytes(0)) + view_.slower_left) {
      return "parks more bytes than the budget has left";
    }
    return std::nullopt;
  }

  std::optional<std::string> mirrors(const Plan& plan) const {
    std::map<std::size_t, Tokens> mirrored;
    Bytes bytes{0};
    for (const Mirror& mirror : plan.mirror) {
      if (mirror.running >= view_.running.size()) return "mirrors what is not running";
      if (left_.contains(mirror.running)) return "mirrors what it parks";
      const RunningView& running = view_.running[mirror.running];
      const auto [at, unused] = mirrored.try_emplace(mirror.running, running.mirrored);
      const Tokens end = next_block_end(at->second, view_.block);
      if (end > view(running.seat).length) return "mirrors cells that are not there";
      bytes += view_.bytes_per_token * (end - at->second).value;
      at->second = end;
    }
    if (plan.mirror.size() > static_cast<std::size_t>(view_.blocks_max)) {
      return "mirrors more blocks than a tick may";
    }
    if (view_.mirror_ram_left && bytes > std::max(*view_.mirror_ram_left, Bytes(0))) {
      return "mirrors more bytes than the budget has left";
    }
    return std::nullopt;
  }

  std::optional<std::string> copies(const Plan& plan) const {
    for (const Copy& copy : plan.copy) {
      if (!exists(copy.seat)) return "copies " + seat_name(copy.seat) + ", which does not exist";
      if (view(copy.seat).uncopied == Tokens(0)) return "copies what need not be copied";
      if (gone_.test(bit(copy.seat)) || taken_.test(bit(copy.seat))) {
        return "copies " + seat_name(copy.seat) + ", which the plan changes";
      }
    }
    if (plan.copy.size() > static_cast<std::size_t>(view_.copies_max)) {
      return "copies more blocks than a tick may";
    }
    return std::nullopt;
  }

  std::optional<std::string> fetches(const Plan& plan) const {
    for (const std::size_t p : plan.fetch) {
      if (p >= view_.parked.size()) return "fetches what is not parked";
      if (!view_.parked[p].away) return "fetches what is in RAM";
    }
    return std::nullopt;
  }

  std::optional<std::string> resumes(const Plan& plan) {
    std::set<std::size_t> seen;
    for (const Resume& resume : plan.resume) {
      if (resume.parked >= view_.parked.size()) return "resumes what is not parked";
      if (!seen.insert(resume.parked).second) return "resumes one sequence twice";
      const ParkedView& parked = view_.parked[resume.parked];
      if (parked.held) return "resumes what is held";
      if (parked.away) return "resumes what is not in RAM";
      if (!exists(resume.seat)) return "resumes to " + seat_name(resume.seat) + ", which is none";
      if (parked.seat && *parked.seat != resume.seat) return "resumes to another seat than asked";
      const bool empty = view(resume.seat).use == SeatUse::empty || gone_.test(bit(resume.seat));
      if (!empty || taken_.test(bit(resume.seat))) {
        return "resumes to " + seat_name(resume.seat) + ", which is taken";
      }
      taken_.set(bit(resume.seat));
    }
    for (const std::size_t p : seen) {
      const ParkedView& parked = view_.parked[p];
      const bool is_whole = parked.group != GroupId() && comes_whole(parked.group, seen);
      if (parked.group != GroupId() && !is_whole && !is_left_alone(parked.group, seen)) {
        return "resumes a part of a group";
      }
      const Tokens shared = is_whole ? parked.shared : Tokens(0);
      if (parked.mode == ParkMode::swap) swapped_in_ += parked.cells - shared;
      fresh_ += parked.need;
    }
    return std::nullopt;
  }

 private:
  bool leaves_whole(GroupId group) const {
    if (group == GroupId()) return false;
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      if (view_.running[i].group == group && !left_.contains(i)) return false;
    }
    return true;
  }
  bool comes_whole(GroupId group, const std::set<std::size_t>& resumed) const {
    for (std::size_t p = 0; p < view_.parked.size(); ++p) {
      if (view_.parked[p].group == group && !resumed.contains(p)) return false;
    }
    return true;
  }
  // Whether nobody of another group is in the pool, once these have come.
  bool is_left_alone(GroupId group, const std::set<std::size_t>& resumed = {}) const {
    for (std::size_t i = 0; i < view_.running.size(); ++i) {
      if (view_.running[i].group != group && !left_.contains(i)) return false;
    }
    return std::all_of(resumed.begin(), resumed.end(),
                       [&](std::size_t p) { return view_.parked[p].group == group; });
  }

  static std::size_t bit(Seat seat) { return static_cast<std::size_t>(seat.value); }
  bool exists(Seat seat) const { return seat.value >= 0 && bit(seat) < view_.seats.size(); }
  const SeatView& view(Seat seat) const { return view_.seats[bit(seat)]; }

  std::optional<std::string> one(const Admission& admission) {
    const auto waiting = std::find_if(view_.waiting.begin(), view_.waiting.end(),
                                      [&](const WaitingView& w) { return w.id == admission.id; });
    if (waiting == view_.waiting.end()) return "admits a request that does not wait";
    if (waiting->held) return "admits a request that is held";
    if (waiting->awaits_prompt) return "admits a choice whose prompt is not there yet";
    if (!exists(admission.seat))
      return "admits to " + seat_name(admission.seat) + ", which is none";
    const bool busy = view(admission.seat).use == SeatUse::busy && !gone_.test(bit(admission.seat));
    if (busy || taken_.test(bit(admission.seat))) {
      return "admits to " + seat_name(admission.seat) + ", which is taken";
    }
    if (waiting->seat && *waiting->seat != admission.seat)
      return "admits to another seat than asked";
    if (admission.fetched > Tokens(0)) return fetched(admission, *waiting);
    const Seat from = admission.source.value_or(admission.seat);
    if (!exists(from)) return "shares from a seat that does not exist";
    Tokens most{0};
    if (!waiting->prefixes.empty()) {
      const PrefixView& prefix = waiting->prefixes[bit(from)];
      most = admission.source ? prefix.shareable : prefix.own;
    }
    if (admission.reuse > most) return "reuses more than the seats have in common";
    if (admission.source && *admission.source == admission.seat) return "shares a seat with itself";
    if (admission.reuse > Tokens(0) && (gone_.test(bit(from)) || taken_.test(bit(from)))) {
      return "reuses cells that the plan drops";
    }
    fresh_ += std::max(waiting->need - admission.reuse, Tokens(0));
    reused_[bit(from)] = std::max(reused_[bit(from)], admission.reuse);
    taken_.set(bit(admission.seat));
    return std::nullopt;
  }

  std::optional<std::string> fetched(const Admission& admission, const WaitingView& waiting) {
    if (admission.source) return "starts from a seat and from the shelf";
    if (admission.reuse > waiting.shelf.reuse) return "fetches more than the shelf has";
    if (admission.fetched < admission.reuse) return "fetches less than it reuses";
    fresh_ += waiting.need;
    swapped_in_ += admission.reuse;
    taken_.set(bit(admission.seat));
    return std::nullopt;
  }

  // Cells held and promised once the plan is applied. What idle seats hold in common is left out,
  // since the view does not tell it: the truth may be more, never less.
  Tokens least_committed() const {
    Tokens out = view_.cells_busy + view_.cells_outstanding + fresh_;
    for (const SeatView& seat : view_.seats) {
      if (seat.use != SeatUse::idle || gone_.test(bit(seat.seat))) continue;
      // Only prefixes are shared, so the cells that a seat holds alone are its last.
      const Tokens kept = taken_.test(bit(seat.seat)) ? reused_[bit(seat.seat)] : seat.length;
      out += std::max(kept - (seat.length - seat.exclusive), Tokens(0));
    }
    return out;
  }

  // Whether the rows would be computed like this also if the sequence were alone.
  bool keeps_shape(const RunningView& running, Tokens rows) const {
    if (view_.chunk == Tokens(0)) return true;
    if (running.prompt_left == Tokens(0)) return rows == Tokens(1);
    const bool is_aligned = view(running.seat).length.value % view_.chunk.value == 0;
    const bool is_last = rows == running.prompt_left && rows < view_.chunk;
    return is_aligned && (rows == view_.chunk || is_last);
  }

  std::optional<std::string> leave(std::size_t running) {
    if (running >= view_.running.size()) return "parks what is not running";
    if (!left_.insert(running).second) return "parks one sequence twice";
    gone_.set(bit(view_.running[running].seat));
    return std::nullopt;
  }

  // Cells that can be free at most when the step begins; where seats share, the truth may be less.
  Tokens most_free() const {
    Tokens out = view_.cells_free;
    for (const SeatView& seat : view_.seats) {
      if (gone_.test(bit(seat.seat))) out += seat.length;
      if (taken_.test(bit(seat.seat)) && seat.use == SeatUse::idle) out += seat.length;
    }
    return out;
  }

  const View& view_;
  SeatBits gone_, taken_;
  std::set<std::size_t> left_;  // Indices into View::running.
  Tokens swapped_in_{0};
  Tokens fresh_{0};                                  // Promised beyond what is reused.
  std::array<Tokens, n_parallel_max + 1> reused_{};  // By the seat that it is reused from.
};

}  // namespace

std::optional<std::string> find_fault(const View& view, const Plan& plan) {
  Checker checker(view);
  if (auto fault = checker.evictions(plan)) return fault;
  if (auto fault = checker.parks(plan)) return fault;
  if (auto fault = checker.resumes(plan)) return fault;
  if (auto fault = checker.fetches(plan)) return fault;
  if (auto fault = checker.admissions(plan)) return fault;
  if (auto fault = checker.mirrors(plan)) return fault;
  if (auto fault = checker.copies(plan)) return fault;
  return checker.rows(plan);
}

}  // namespace fermata::policy
