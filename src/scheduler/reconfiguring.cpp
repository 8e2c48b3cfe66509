// The scheduler's part in a change of geometry: when it happens, and what becomes of whom.
#include "base/check.h"
#include "base/log.h"
#include "reconfigure/crate.h"
#include "scheduler/scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fermata::scheduler {
namespace {

using reconfigure::Fate;
using reconfigure::Reason;
using reconfigure::Receipt;
using reconfigure::Transfer;

constexpr Micros slice_min{1'000};
constexpr Micros slice_max{20'000};
// Who computes faster than it is copied does not hold the others up for ever.
constexpr std::int32_t slices_max = 4096;

engine::EngineLimits expected_limits(const Geometry& to, const engine::EngineLimits& now) {
  engine::EngineLimits out = now;
  out.cells = to.n_ctx;
  out.window = reconfigure::window_of(to);
  out.seats = to.n_parallel;
  return out;
}

// Copying takes an eighth of a step's time between two steps.
Micros slice(const SchedulerStats& stats, bool is_idle) {
  const auto steps = static_cast<std::int64_t>(stats.steps.value());
  if (is_idle || steps == 0) return slice_max;
  const Micros step(static_cast<std::int64_t>(stats.steps_us.value()) / steps);
  return std::clamp(step / 8, slice_min, slice_max);
}

bool stays(const std::vector<kv::Adopted>& staying, Seat seat) {
  return std::ranges::find(staying, seat, &kv::Adopted::from) != staying.end();
}

}  // namespace

SubmitOutcome Scheduler::reconfigure(ChangeCommand command) {
  FERMATA_CHECK(options_.workshop != nullptr, "nobody here builds engines");
  if (change_.is_asked.exchange(true)) return SubmitOutcome::queue_full;
  command.asked = clock_.now();
  if (change_.queue.push(std::move(command)) == PushOutcome::pushed) {
    inbox_.poke();
    return SubmitOutcome::accepted;
  }
  change_.is_asked = false;
  return SubmitOutcome::stopping;
}

// Answers whether there was anything to do.
bool Scheduler::change_geometry() {
  if (!change_.now) return !change_.is_coming_back && begin_change();
  if (stopping_now_.load(std::memory_order_acquire)) return false;
  if (change_.now->stage == ChangeStage::moving) {
    const bool only_tails = change_.now->transfer->advance(slice(stats_, running_.empty()));
    if (!only_tails && ++change_.now->slices < slices_max) return true;
    if (has_outgrown()) return true;
    const Micros begun = clock_.now();
    std::vector<kv::Adopted> adopted = change_.now->transfer->finish();
    change_.now->receipt.moved = change_.now->transfer->moved();
    change_.now->receipt.page_out = change_.now->transfer->out_time();
    change_.now->receipt.page_in = change_.now->transfer->in_time();
    engine::Engine& old = engine_.target();
    install(*change_.now->engine, std::move(adopted));
    options_.workshop->discard(old);
    change_.now->receipt.pause = clock_.now() - begun;
    end_change(Receipt::Outcome::done);
    return true;
  }
  auto built = options_.workshop->take();
  if (!built) return false;
  change_.now->receipt.build = clock_.now() - change_.now->since;
  if (!*built) {
    end_change(Receipt::Outcome::rolled_back, built->error());
    return true;
  }
  change_.now->engine = **built;
  if (has_outgrown()) return true;
  change_.now->stage = ChangeStage::moving;
  change_.now->since = clock_.now();
  std::vector<Transfer::Item> items;
  if (change_.now->plan.keeps_cells) items = choose_seats(change_.now->engine->limits());
  change_.now->transfer.emplace(engine_.target(), *change_.now->engine, pool_, items, clock_,
                                options_.block);
  return true;
}

// Whether somebody who came or grew since it was decided does not fit any more: then it is undone.
bool Scheduler::has_outgrown() {
  const Tokens window = change_.now->engine->limits().window;
  for (const reconfigure::Request& request : requests_under_way()) {
    if (request.least <= window) continue;
    change_.now->receipt.refusal.requests = {request.id};
    options_.workshop->discard(*change_.now->engine);
    end_change(Receipt::Outcome::rolled_back,
               "request " + std::to_string(request.id.value) +
                   " came or grew meanwhile, and needs a window of " +
                   std::to_string(request.least.value) + " tokens");
    return true;
  }
  return false;
}

bool Scheduler::begin_change() {
  change_.queue.drain(change_.drained);
  if (change_.drained.empty()) return false;
  change_.now = std::make_unique<Changing>();
  change_.now->command = std::move(change_.drained.front());
  change_.drained.clear();
  const reconfigure::Change& change = change_.now->command.change;
  Receipt& receipt = change_.now->receipt;
  change_.now->since = clock_.now();
  receipt.queue = change_.now->since - change_.now->command.asked;
  receipt.reason = change.reason;
  receipt.dry_run = change.dry_run;
  receipt.before = receipt.after = engine_.geometry();
  const std::vector<reconfigure::Request> requests = requests_under_way();
  const reconfigure::Situation now = situation(requests, change);
  receipt.cost = now.cost;
  auto decided = reconfigure::decide(change, now);
  const bool has_parking = options_.overcommit && options_.preempt.enabled;
  if (decided && !has_parking) {
    std::size_t kept = 0;
    for (const Transfer::Item& item :
         choose_seats(expected_limits(decided->to, engine_.limits()))) {
      kept += pool_.use(item.from) == kv::SeatUse::busy;
    }
    if (!decided->keeps_cells) kept = 0;
    if (kept < running_.size()) {
      decided = Err(reconfigure::Refusal{
          .kind = reconfigure::RefusalKind::no_parking,
          .message = "running requests would have to wait out of the pool, and parking is off; "
                     "wait for their end, or start the server with --preempt"});
    }
  }
  if (!decided) {
    receipt.refusal = decided.error();
    end_change(Receipt::Outcome::refused);
    return true;
  }
  // Without an engine there is nothing to build beside.
  if (change_.absent) decided->path = reconfigure::Path::in_place;
  change_.now->plan = *decided;
  receipt.path = decided->path;
  receipt.after = decided->to;
  if (change.dry_run || decided->to == engine_.geometry()) {
    end_change(Receipt::Outcome::done);
  } else if (decided->path == reconfigure::Path::beside) {
    options_.workshop->begin(decided->to);
  } else {
    change_in_place();
  }
  return true;
}

std::vector<reconfigure::Request> Scheduler::requests_under_way() const {
  std::vector<reconfigure::Request> out;
  const Tokens window = engine_.limits().window;
  for (const auto* list : {&running_, &parked_, &waiting_}) {
    for (const auto& sequence : *list) {
      const Request& request = sequence->request();
      // What ends with the window in any case ends with the new one; it has room for one more.
      const Tokens rows = std::max(sequence->computed(), sequence->reached());
      Tokens least = std::max(sequence->prompt_length(), rows) + Tokens(2);
      // In this order nothing overflows.
      if (request.max_tokens >= Tokens(0) && request.max_tokens < window) {
        const Tokens most = sequence->prompt_length() + request.max_tokens + Tokens(1);
        if (most <= window) least = most;
      }
      out.push_back({request.id, sequence->last_seat(), least});
    }
  }
  return out;
}

reconfigure::Situation Scheduler::situation(const std::vector<reconfigure::Request>& requests,
                                            const reconfigure::Change& change) const {
  const engine::Capabilities& can = engine_.capabilities();
  return {.now = engine_.geometry(),
          .flash_attention = options_.flash_attention,
          .deterministic = options_.deterministic,
          .chunk = chunk_,
          .moves = can.move_ranges || can.move_sequences,
          .requests = requests,
          .cost = options_.workshop->cost(engine_.geometry(),
                                          reconfigure::changed(engine_.geometry(), change)),
          .forced_path = options_.change_path};
}

// Running ones first, by priority and age, those of one request together; then idle conversations,
// the last used first.
std::vector<Transfer::Item> Scheduler::choose_seats(const engine::EngineLimits& limits) const {
  std::vector<const Sequence*> running;
  for (const auto& sequence : running_) running.push_back(sequence.get());
  std::ranges::stable_sort(running, std::greater(),
                           [](const Sequence* s) { return s->request().priority; });
  std::vector<std::vector<Seat>> units;
  std::vector<GroupId> groups;
  for (const Sequence* sequence : running) {
    const auto same = std::ranges::find(groups, sequence->group());
    if (sequence->group() != GroupId() && same != groups.end()) {
      units[static_cast<std::size_t>(same - groups.begin())].push_back(sequence->seat());
      continue;
    }
    groups.push_back(sequence->group());
    units.push_back({sequence->seat()});
  }
  std::vector<Seat> idle;
  for (std::int32_t s = 0; s < pool_.seats(); ++s) {
    if (pool_.use(Seat(s)) == kv::SeatUse::idle) idle.push_back(Seat(s));
  }
  std::ranges::sort(idle, std::greater(), [this](Seat seat) { return pool_.last_used(seat); });
  for (const Seat seat : idle) units.push_back({seat});

  kv::SeatSet chosen;
  Tokens promised{0};
  const bool is_pooled = engine_.geometry().layout == Layout::pooled;
  for (const std::vector<Seat>& unit : units) {
    kv::SeatSet with = chosen;
    Tokens more{0};
    bool fits = true;
    for (const Seat seat : unit) {
      with.set(static_cast<std::size_t>(seat.value));
      more += std::max(pool_.promised(seat), pool_.ledger().length(seat));
      fits = fits && pool_.ledger().length(seat) < limits.window;
    }
    fits = fits && with.count() <= static_cast<std::size_t>(limits.seats);
    if (is_pooled) fits = fits && pool_.ledger().used_by(with) <= limits.cells;
    if (is_pooled && !options_.overcommit) fits = fits && promised + more <= limits.cells;
    if (!fits) continue;
    chosen = with;
    promised += more;
  }
  // Numbers stay where they can.
  std::vector<Transfer::Item> items;
  std::int32_t next = 0;
  for (std::int32_t s = 0; s < pool_.seats(); ++s) {
    if (!chosen.test(static_cast<std::size_t>(s))) continue;
    Seat to(s);
    if (s >= limits.seats) {
      while (chosen.test(static_cast<std::size_t>(next))) ++next;
      to = Seat(next++);
    }
    items.push_back({Seat(s), to});
  }
  return items;
}

reconfigure::SequenceFate Scheduler::fate_of(Seat seat) const {
  const Sequence* const sequence = find_running(seat);
  const Tokens tokens = pool_.ledger().length(seat);
  reconfigure::SequenceFate out{
      .seat = seat, .tokens = tokens, .bytes = bytes_per_token_ * tokens.value};
  if (sequence != nullptr) out.id = sequence->request().id;
  return out;
}

// Who does not stay leaves the pool: running ones are parked, idle ones go to the shelf and the
// store. Not exact: their bytes are of no use to who comes next.
reconfigure::Fates Scheduler::leave_seats(const std::vector<kv::Adopted>& staying, bool exact) {
  reconfigure::Fates fates;
  policy::Plan parks;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (stays(staying, running_[i]->seat())) continue;
    reconfigure::SequenceFate fate = fate_of(running_[i]->seat());
    fate.fate = exact ? Fate::parked : Fate::recompute;
    fate.reason = exact ? Reason::no_seat : Reason::kv_type_changed;
    fates.push_back(fate);
    parks.park.push_back({.running = i,
                          .mode = exact ? policy::ParkMode::swap : policy::ParkMode::recompute,
                          .reason = policy::ParkReason::reconfigure});
  }
  std::ranges::stable_sort(parks.park, std::less(), [this](const policy::Park& park) {
    return running_[park.running]->group();
  });
  park(parks);
  remove_finished();
  for (std::int32_t s = 0; s < pool_.seats(); ++s) {
    if (pool_.use(Seat(s)) != kv::SeatUse::idle || stays(staying, Seat(s))) continue;
    reconfigure::SequenceFate fate = fate_of(Seat(s));
    const bool was_unsaved = unsaved_[static_cast<std::size_t>(s)];
    const bool is_stored =
        archive_.is_on() && (!was_unsaved || save(Seat(s), kv::SaveAt::eviction));
    const std::uint64_t before = pool_.shelf().stats().stored;
    pool_.evict(Seat(s));
    const bool is_kept = is_stored || (exact && pool_.shelf().stats().stored > before);
    fate.fate = is_kept ? Fate::kept_in_store : Fate::dropped;
    fate.reason = !exact ? Reason::kv_type_changed : is_kept ? Reason::no_seat : Reason::budget;
    fates.push_back(fate);
  }
  return fates;
}

// Of those whom a change leaves without a seat.
void Scheduler::leave_for_change(const std::vector<kv::Adopted>& staying) {
  std::ranges::move(leave_seats(staying, change_.now->plan.keeps_cells),
                    std::back_inserter(change_.now->receipt.fates));
}

// The engine that is in force until now still holds what leaves, or is absent.
void Scheduler::install(engine::Engine& next, std::vector<kv::Adopted> adopted) {
  // Those of one request go together, and nobody stays without whom it begins like.
  for (bool changed = true; std::exchange(changed, false);) {
    std::erase_if(adopted, [&](const kv::Adopted& seat) {
      const Sequence* const sequence = find_running(seat.from);
      const bool is_alone =
          sequence != nullptr && sequence->group() != GroupId() &&
          std::ranges::any_of(running_, [&](const auto& other) {
            return other->group() == sequence->group() && !stays(adopted, other->seat());
          });
      const bool is_cut_off =
          seat.like && std::ranges::find(adopted, *seat.like, &kv::Adopted::to) == adopted.end();
      if (!is_alone && !is_cut_off) return false;
      next.clear(seat.to);
      return changed = true;
    });
  }
  leave_for_change(adopted);
  for (const kv::Adopted& seat : adopted) {
    reconfigure::SequenceFate fate = fate_of(seat.from);
    fate.fate = fate.id ? Fate::kept_running : Fate::restored;
    change_.now->receipt.fates.push_back(fate);
  }
  const bool is_same_kind = reconfigure::are_alike(engine_.geometry(), next.geometry());
  engine_.point_to(next);
  pool_.adopt(adopted);
  change_.absent.reset();
  change_.fails_since.reset();
  sleep_.wake(clock_.now());
  no_room_in_a_row_ = 0;  // Of the old one.
  renumber(adopted);
  if (!is_same_kind) fit_to(next);
  board_.update([&](Status& status) {
    status.geometry = engine_.geometry();
    status.limits = engine_.limits();
    status.seats.assign(static_cast<std::size_t>(engine_.limits().seats), {});
  });
  for (const auto& sequence : running_) sequence->channel().notice(NoticeKind::reconfigured);
}

void Scheduler::renumber(const std::vector<kv::Adopted>& adopted) {
  const auto count = static_cast<std::size_t>(engine_.limits().seats);
  std::vector<std::shared_ptr<const Request>> requests(count);
  std::vector<bool> unsaved(count);
  for (const kv::Adopted& seat : adopted) {
    const auto from = static_cast<std::size_t>(seat.from.value);
    const auto to = static_cast<std::size_t>(seat.to.value);
    requests[to] = last_request_[from];
    unsaved[to] = unsaved_[from];
  }
  // All at once: numbers may change places.
  std::vector<Seat> seats;
  for (const auto& sequence : running_) {
    const auto at = std::ranges::find(adopted, sequence->seat(), &kv::Adopted::from);
    FERMATA_CHECK(at != adopted.end(), "a running request without a seat");
    seats.push_back(at->to);
  }
  for (std::size_t i = 0; i < seats.size(); ++i) running_[i]->move_to(seats[i]);
  last_request_ = std::move(requests);
  unsaved_ = std::move(unsaved);
}

// States of the old geometry are none of the new one: what is parked is computed again.
void Scheduler::fit_to(const engine::Engine& next) {
  for (const auto& sequence : parked_) {
    if (!sequence->image().has_bytes()) continue;
    sequence->forget_bytes();
    spilling_.forget(sequence->request().id);
  }
  pool_.forget_bytes();
  bytes_per_token_ =
      options_.workshop->bytes_per_token(next.geometry()) + engine::state_bytes_per_cell;
  if (archive_.is_on()) {
    const store::Fingerprint fingerprint = options_.workshop->fingerprint(next.geometry());
    archive_.change_fingerprint(fingerprint, !next.capabilities().move_ranges);
    spilling_.change_fingerprint(fingerprint, archive_.kind());
    page_desk_.change_fingerprint(fingerprint, archive_.kind(), next.range_check());
    slot_desk_.change_fingerprint(fingerprint);
  }
}

void Scheduler::change_in_place() {
  const Micros begun = clock_.now();
  Receipt& receipt = change_.now->receipt;
  const Geometry before = engine_.geometry();
  std::vector<Transfer::Item> items;
  if (change_.now->plan.keeps_cells) {
    items = choose_seats(expected_limits(change_.now->plan.to, engine_.limits()));
  }
  std::vector<kv::Adopted> staying;
  std::vector<Transfer::Item> as_before;
  for (const Transfer::Item& item : items) {
    staying.push_back({.from = item.from, .to = item.from});
    as_before.push_back({item.from, item.from});
  }
  leave_for_change(staying);
  reconfigure::Crate crate(engine_.target(), pool_, items, options_.block);
  receipt.moved = crate.bytes();
  const Micros packed = clock_.now();
  receipt.page_out = packed - begun;
  if (!change_.absent) {
    engine::Engine& old = engine_.target();
    change_.absent.emplace(old);
    engine_.point_to(*change_.absent);
    options_.workshop->remove(old);
  }
  const Micros freed = clock_.now();
  receipt.free = freed - packed;
  auto built = options_.workshop->build(change_.now->plan.to);
  std::string failure;
  if (!built) {
    failure = built.error();
    built = options_.workshop->build(before);
  }
  const Micros there = clock_.now();
  receipt.init = there - freed;
  if (built) {
    install(**built, crate.unpack(**built, failure.empty() ? items : as_before));
  } else {
    leave_for_change({});
    change_.next_try = clock_.now() + try_again_after;
    log_error("no context could be built, the old one neither: {}; it is tried again", failure);
  }
  receipt.page_in = clock_.now() - there;
  receipt.pause = clock_.now() - begun;
  if (failure.empty()) {
    end_change(Receipt::Outcome::done);
  } else {
    end_change(Receipt::Outcome::rolled_back, std::move(failure));
  }
}

void Scheduler::end_change(Receipt::Outcome outcome, std::string failure) {
  const std::unique_ptr<Changing> done = std::move(change_.now);
  Receipt& receipt = done->receipt;
  receipt.outcome = outcome;
  receipt.failure = std::move(failure);
  if (outcome == Receipt::Outcome::rolled_back) receipt.after = engine_.geometry();
  const bool has_changed =
      outcome == Receipt::Outcome::done && !receipt.dry_run && !(receipt.before == receipt.after);
  if (has_changed) {
    ++change_.version;
    receipt.after = engine_.geometry();
    stats_.changes.add();
    stats_.change_pause.observe(receipt.pause);
    log_info("geometry {}: {} tokens, {} slots, {}; it took {} ms, of which steps paused {:.1f}",
             change_.version, engine_.limits().cells.value, engine_.limits().seats,
             reconfigure::name(receipt.path), (clock_.now() - done->command.asked).value / 1000,
             static_cast<double>(receipt.pause.value) / 1000.0);
  } else if (outcome != Receipt::Outcome::done) {
    stats_.changes_failed.add();
    log_warn("the geometry stays: {}",
             receipt.failure.empty() ? receipt.refusal.message : receipt.failure);
  }
  receipt.version = change_.version;
  receipt.total = clock_.now() - done->command.asked;
  board_.update([&](Status& status) {
    status.version = change_.version;
    if (!receipt.dry_run) status.last_change = receipt;
  });
  publish();
  change_.is_asked = false;  // Whoever has its receipt may ask for the next one.
  done->command.reply->give(std::move(receipt));
}

// The engine that is still being built stays the workshop's.
void Scheduler::refuse_change() {
  change_.queue.close();
  if (!change_.now) {
    change_.queue.drain(change_.drained);
    if (change_.drained.empty()) return;
    change_.now = std::make_unique<Changing>();
    change_.now->command = std::move(change_.drained.front());
    change_.drained.clear();
  }
  end_change(Receipt::Outcome::stopping, "the server shuts down");
}

}  // namespace fermata::scheduler
