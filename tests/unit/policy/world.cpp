#include "unit/policy/world.h"

#include "base/check.h"

#include <algorithm>
#include <set>

namespace fermata::policy {
namespace {

std::size_t common_prefix(const std::string& a, const std::string& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<std::size_t>(end - a.begin());
}

Tokens tokens(std::size_t n) { return Tokens(static_cast<std::int64_t>(n)); }

}  // namespace

World::World(int seats, std::int64_t cells, const Memory& memory)
    : memory_(memory), cells_(cells), seats_(static_cast<std::size_t>(seats)) {}

void World::compute(SeatState& seat, const std::string& text) {
  seat.text += text;
  for (std::size_t i = 0; i < text.size() && memory_.cells_per_token; ++i) {
    seat.cells.push_back(next_cell_++);
  }
}

void World::share(SeatState& seat, int from, std::size_t n) {
  const SeatState& source = seats_[static_cast<std::size_t>(from)];
  seat.text = source.text.substr(0, n);
  seat.cells.assign(
      source.cells.begin(),
      source.cells.begin() + static_cast<std::ptrdiff_t>(std::min(n, source.cells.size())));
}

void World::cut(SeatState& seat, std::size_t keep) {
  seat.text.resize(keep);
  if (memory_.cells_per_token) seat.cells.resize(keep);
}

void World::idle(int seat, const std::string& text, std::int64_t last_used) {
  idle_shared(seat, seat, 0, text, last_used);
}

void World::busy(int seat, const std::string& text, std::int64_t promised) {
  busy_shared(seat, seat, 0, text, promised);
}

void World::idle_shared(int seat, int from, std::size_t n, const std::string& rest,
                        std::int64_t last_used) {
  SeatState& state = at(Seat(seat));
  FERMATA_CHECK(state.use == SeatUse::empty, "the test seats two on one seat");
  if (n > 0) share(state, from, n);
  compute(state, rest);
  state.use = SeatUse::idle;
  state.last_used = last_used;
}

void World::busy_shared(int seat, int from, std::size_t n, const std::string& rest,
                        std::int64_t promised) {
  idle_shared(seat, from, n, rest, 0);
  at(Seat(seat)).use = SeatUse::busy;
  at(Seat(seat)).promised = promised;
}

void World::clear(int seat) { clear(at(Seat(seat))); }

void World::clear(SeatState& seat) {
  const std::int64_t last_used = seat.last_used;
  seat = SeatState();
  seat.last_used = last_used;
}

void World::wait(std::uint64_t id, const std::string& prompt, std::int64_t max_tokens,
                 std::optional<Seat> seat) {
  const Tokens most = window() - Tokens(1);
  const Tokens length = tokens(prompt.size());
  Tokens need = max_tokens < 0 ? most : std::max(length + Tokens(max_tokens - 1), length);
  need = memory_.cells_per_token ? std::min(need, most) : Tokens(0);
  waiting_.push_back({RequestId(id), prompt, need, seat});
}

Tokens World::window() const {
  return memory_.layout == Layout::pooled ? cells_
                                          : cells_ / static_cast<std::int64_t>(seats_.size());
}

Tokens World::used(const std::vector<bool>& of) const {
  std::set<int> all;
  for (std::size_t s = 0; s < seats_.size(); ++s) {
    if (of[s]) all.insert(seats_[s].cells.begin(), seats_[s].cells.end());
  }
  return tokens(all.size());
}

Tokens World::used_by_busy() const {
  std::vector<bool> of;
  for (const SeatState& seat : seats_) of.push_back(seat.use == SeatUse::busy);
  return used(of);
}

Tokens World::exclusive(std::size_t seat) const {
  std::vector<bool> others(seats_.size(), true);
  others[seat] = false;
  return used() - used(others);
}

Tokens World::outstanding() const {
  Tokens out{0};
  for (const SeatState& seat : seats_) {
    const Tokens held = tokens(seat.text.size());
    if (seat.use == SeatUse::busy) out += std::max(Tokens(seat.promised) - held, Tokens(0));
  }
  return memory_.cells_per_token ? out : Tokens(0);
}

Tokens World::unpromised() const { return cells_ - used() - outstanding(); }

PrefixView World::prefix(const SeatState& seat, const std::string& prompt) const {
  const std::size_t common = common_prefix(seat.text, prompt.substr(0, prompt.size() - 1));
  PrefixView out;
  const bool can_keep = memory_.cuts_and_shares || common == seat.text.size();
  if (seat.use != SeatUse::busy && can_keep) out.own = tokens(common);
  if (memory_.cuts_and_shares && memory_.layout == Layout::pooled) out.shareable = tokens(common);
  return out;
}

View World::view() {
  seat_views_.clear();
  waiting_views_.clear();
  prefixes_.clear();
  std::size_t open = 0;
  for (std::size_t s = 0; s < seats_.size(); ++s) {
    const SeatState& seat = seats_[s];
    seat_views_.push_back({Seat(static_cast<std::int32_t>(s)), seat.use, tokens(seat.text.size()),
                           exclusive(s), Micros(seat.last_used)});
    open += seat.use != SeatUse::busy;
  }
  prefixes_.reserve(waiting_.size());
  for (const Waiting& waiting : waiting_) {
    std::vector<PrefixView> prefixes;
    const bool seat_taken = waiting.seat && at(*waiting.seat).use == SeatUse::busy;
    if (open > 0 && !seat_taken) {
      --open;
      for (const SeatState& seat : seats_) prefixes.push_back(prefix(seat, waiting.prompt));
    }
    prefixes_.push_back(std::move(prefixes));
    waiting_views_.push_back({waiting.id, tokens(waiting.prompt.size()), waiting.need, Tokens(-1),
                              0, waiting.seat, prefixes_.back()});
  }
  View view;
  view.layout = memory_.layout;
  view.cells = cells_;
  view.cells_unpromised = unpromised();
  view.cells_busy = used_by_busy();
  view.cells_outstanding = outstanding();
  view.batch_max = batch_max;
  view.step_budget = step_budget;
  view.rates = rates;
  view.seats = seat_views_;
  view.waiting = waiting_views_;
  view.running = running_;
  return view;
}

std::string World::admit(const Admission& admission) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& w) { return w.id == admission.id; });
  if (found == waiting_.end()) return "admits what does not wait";
  SeatState& seat = at(admission.seat);
  if (seat.use == SeatUse::busy) return "admits to a busy seat";
  const auto reuse = static_cast<std::size_t>(admission.reuse.value);
  const SeatState& source = at(admission.source.value_or(admission.seat));
  if (reuse >= found->prompt.size()) return "leaves nothing to compute";
  if (source.text.size() < reuse ||
      source.text.substr(0, reuse) != found->prompt.substr(0, reuse)) {
    return "goes on from somebody else's text";
  }
  if (admission.source && reuse > 0) {
    share(seat, admission.source->value, reuse);
  } else {
    cut(seat, reuse);
  }
  seat.use = SeatUse::busy;
  seat.promised = std::max(found->need, tokens(found->prompt.size())).value;
  waiting_.erase(found);
  return "";
}

std::string World::apply(const Plan& plan) {
  for (Seat seat : plan.evict) {
    if (at(seat).use != SeatUse::idle) return "evicts a seat that is not idle";
    clear(at(seat));
  }
  for (const Admission& admission : plan.admit) {
    if (std::string fault = admit(admission); !fault.empty()) return fault;
  }
  if (memory_.layout == Layout::pooled && unpromised() < Tokens(0)) {
    return "promises more cells than there are";
  }
  return "";
}

}  // namespace fermata::policy
