// The scheduler's part in keeping conversations that nobody computes.
#include "scheduler/scheduler.h"

#include <algorithm>
#include <span>
#include <utility>

namespace fermata::scheduler {
namespace {

// Fewer tokens are computed sooner than they are waited for.
constexpr Tokens worth_awaiting{64};
// Of a tick; each that waits is compared with them.
constexpr std::size_t starters_max = 64;

}  // namespace

bool Scheduler::anything_to_copy() const {
  if (!options_.copies_idle && !archive_.is_on()) return false;
  for (std::int32_t s = 0; s < pool_.seats(); ++s) {
    if (pool_.uncopied(Seat(s)) > Tokens(0)) return true;
  }
  return false;
}

void Scheduler::copy_idle(const policy::Plan& plan) {
  if (plan.copy.empty()) return;
  const Micros began = clock_.now();
  std::int32_t blocks = 0;
  for (const policy::Copy& copy : plan.copy) {
    if (pool_.uncopied(copy.seat) == Tokens(0)) break;
    blocks += pool_.copy_next(copy.seat) ? 1 : 0;
  }
  copy_pace_.copied(clock_.now() - began, blocks);
}

void Scheduler::take_arrivals() {
  from_outside_.arrivals.clear();
  from_outside_.others.clear();
  archive_.reap(from_outside_.arrivals, from_outside_.others);
  for (store::Completion& completion : from_outside_.others) {
    if (spilling_.take(completion) || slot_desk_.take(completion)) continue;
    page_desk_.take(std::move(completion));
  }
  spilling_.take(parked_);
  for (const kv::Arrival& arrival : from_outside_.arrivals) {
    const auto waits = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& sequence) {
      return sequence->request().id == arrival.id;
    });
    if (waits == waiting_.end()) continue;  // Its client has left.
    (*waits)->searched(arrival.found ? Sequence::Search::found : Sequence::Search::done);
  }
}

// Asks the store once for the beginning of a prompt.
bool Scheduler::is_loading(Sequence& sequence) {
  const Request& request = sequence.request();
  if (sequence.search() == Sequence::Search::open && archive_.is_on()) {
    const bool asked = request.cache_prompt && archive_.fetch(request, at_hand(request, nullptr));
    sequence.searched(asked ? Sequence::Search::loading : Sequence::Search::done);
  }
  return sequence.search() == Sequence::Search::loading;
}

// What it could start from now, but for the cells of one sequence.
Tokens Scheduler::at_hand(const Request& request, const Sequence* except) const {
  Tokens most = request.cache_prompt ? pool_.offer(request.prompt, request.owner).reuse : Tokens(0);
  for (std::int32_t s = 0; s < pool_.seats(); ++s) {
    if (except != nullptr && except->is_seated() && except->seat() == Seat(s)) continue;
    const kv::PrefixMatch found = match(request, Seat(s));
    most = std::max({most, found.own, found.shareable});
  }
  return most;
}

// Whether somebody computes a long beginning of its prompt just now, or is about to: it starts from
// those cells as soon as they are there, and nobody computes them twice. Else it is a starter.
bool Scheduler::awaits_beginning(const Sequence& sequence) {
  const Request& request = sequence.request();
  if (!engine_.capabilities().share_prefix || !request.cache_prompt || request.prompt.size() < 2) {
    return false;
  }
  const std::span<const TokenId> prompt(request.prompt);
  for (const Sequence* starter : views_.starters) {
    const Request& other = starter->request();
    const bool may_share = other.owner == request.owner && other.cache_prompt;
    const GroupId group = sequence.group();
    if (!may_share || (group != GroupId() && other.group == group)) continue;
    const Tokens common = kv::common_prefix(other.prompt, prompt.first(prompt.size() - 1));
    const bool comes = common >= worth_awaiting && starter->computed() < common;
    if (comes && common - at_hand(request, starter) >= worth_awaiting) return true;
  }
  if (views_.starters.size() < starters_max) views_.starters.push_back(&sequence);
  return false;
}

// What turns left behind, once their blocks are copied. Whether anything was handed to the store.
bool Scheduler::save_idle(kv::SaveAt at) {
  if (!archive_.is_on()) return false;
  bool worked = false;
  for (std::int32_t s = 0; s < pool_.seats(); ++s) {
    if (at == kv::SaveAt::turn_end && pool_.uncopied(Seat(s)) > Tokens(0)) continue;
    worked |= save(Seat(s), at);
  }
  return worked;
}

bool Scheduler::save(Seat seat, kv::SaveAt at) {
  const auto index = static_cast<std::size_t>(seat.value);
  if (!archive_.is_on() || !unsaved_[index] || pool_.use(seat) != kv::SeatUse::idle) return false;
  if (!archive_.save(seat, price_of(pool_.ledger().length(seat)), at)) return false;
  unsaved_[index] = false;
  return true;
}

Tokens Scheduler::take_seat(const policy::Admission& admission, const Request& request) {
  if (!goes_on(pool_.ledger().length(admission.seat), admission.reuse)) {
    (void)save(admission.seat, kv::SaveAt::eviction);
  }
  if (admission.fetched == Tokens(0)) {
    return admission.source ? pool_.take_shared(admission.seat, *admission.source, admission.reuse)
                            : pool_.take(admission.seat, admission.reuse);
  }
  const Micros began = clock_.now();
  const Tokens reused = pool_.take_shelved(admission.seat, request.prompt,
                                           {admission.reuse, admission.fetched}, request.owner);
  stats_.cache_in.observe(clock_.now() - began);
  stats_.cache_tokens.add(static_cast<std::uint64_t>(reused.value));
  return reused;
}

void Scheduler::evict(Seat seat) {
  (void)save(seat, kv::SaveAt::eviction);
  pool_.evict(seat);
  stats_.seats_evicted.add();
}

double Scheduler::price_of(Tokens tokens) const {
  const auto us_per_1k = static_cast<double>(pace_.rates(0).prefill_per_1k.value);
  return static_cast<double>(tokens.value) * us_per_1k / 1e9;
}

void Scheduler::publish_cache() {
  stats_.cached_bytes.set(pool_.vault().cached().value);
  stats_.cached_conversations.set(static_cast<std::int64_t>(pool_.shelf().size()));
  const kv::ShelfStats& shelf = pool_.shelf().stats();
  stats_.cache_stored.set(static_cast<std::int64_t>(shelf.stored));
  stats_.cache_hits.set(static_cast<std::int64_t>(shelf.hits));
  stats_.cache_superseded.set(static_cast<std::int64_t>(shelf.superseded));
  stats_.cache_evicted.set(static_cast<std::int64_t>(shelf.evicted));
}

}  // namespace fermata::scheduler
