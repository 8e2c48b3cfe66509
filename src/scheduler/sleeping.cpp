// The scheduler's part in doing without a context: because nobody needs it, or because none could
// be built.
#include "scheduler/sleeping.h"

#include "base/log.h"
#include "base/memory.h"
#include "scheduler/scheduler.h"

#include <algorithm>

namespace fermata::scheduler {
namespace {

// Who came when none could be built waits for so long in all.
constexpr Micros patience{10'000'000};
// A disk that takes no more is not waited for longer.
constexpr Micros store_patience{10'000'000};

std::int64_t mib(Bytes bytes) { return bytes.value >> 20; }

// Whether an idle conversation has yet to be handed to the store.
bool is_any_unsaved(const kv::Pool& pool, const std::vector<bool>& unsaved) {
  for (std::int32_t s = 0; s < pool.seats(); ++s) {
    const bool is_idle = pool.use(Seat(s)) == kv::SeatUse::idle;
    if (is_idle && unsaved[static_cast<std::size_t>(s)]) return true;
  }
  return false;
}

}  // namespace

// Whether an engine is needed.
bool Scheduler::is_wanted() const {
  return !waiting_.empty() || !running_.empty() || !parked_.empty() ||
         slot_desk_.waits_for_engine();
}

// Answers whether there was anything to do.
bool Scheduler::rest() {
  const Micros now = clock_.now();
  const bool is_active = is_wanted() || change_.now != nullptr || slot_desk_.is_busy();
  if (is_active) sleep_.stir(now);
  if (change_.absent) {
    const bool is_asleep = sleep_.depth() != Depth::awake;
    if (change_.is_coming_back || is_wanted() || !is_asleep) return come_back();
  }
  const Depth due = sleep_.due(now);
  if (is_active || due == sleep_.depth()) return false;
  const bool is_written = !archive_.is_on() || !is_any_unsaved(pool_, unsaved_);
  if (sleep_.depth() == Depth::awake && !is_written && sleep_.overdue(now) < store_patience) {
    return false;
  }
  sleep(due);
  return true;
}

void Scheduler::sleep(Depth depth) {
  const Bytes before = resident_bytes();
  if (sleep_.depth() == Depth::awake) {
    const reconfigure::Fates fates = leave_seats({}, true);
    const auto kept = std::ranges::count(fates, reconfigure::Fate::kept_in_store,
                                         &reconfigure::SequenceFate::fate);
    engine::Engine& old = engine_.target();
    change_.absent.emplace(old);
    engine_.point_to(*change_.absent);
    options_.workshop->remove(old);
    pool_.adopt({});
    renumber({});
    stats_.sleeps.add();
    log_info("idle: the context is released; {} of {} conversations are kept", kept, fates.size());
  }
  if (options_.embedder != nullptr) options_.embedder->sleep();
  options_.workshop->release_memory(depth == Depth::weights);
  sleep_.reach(depth);
  const Bytes after = resident_bytes();
  stats_.slept_off.set(std::max(before - after, Bytes(0)).value);
  log_info("asleep{}: {} MiB in memory, {} before; the next request wakes it",
           depth == Depth::weights ? ", without the weights" : "", mib(after), mib(before));
}

// Requests wait meanwhile.
bool Scheduler::come_back() {
  const Micros now = clock_.now();
  if (!change_.is_coming_back) {
    if (change_.now || now < change_.next_try) return false;
    change_.is_coming_back = true;
    change_.since = now;
    options_.workshop->begin(change_.absent->geometry());
    return true;
  }
  const auto built = options_.workshop->take();
  if (!built) return false;
  change_.is_coming_back = false;
  if (!*built) {
    change_.next_try = now + try_again_after;
    if (!change_.fails_since) change_.fails_since = change_.since;
    log_error("no context could be built: {}; it is tried again", built->error());
    if (now - *change_.fails_since >= patience) give_up_waiting();
    return true;
  }
  engine_.point_to(***built);
  change_.absent.reset();
  change_.fails_since.reset();
  pool_.adopt({});
  if (sleep_.depth() != Depth::awake) {
    sleep_.wake(now);
    stats_.wakes.add();
    stats_.wake_time.observe(now - change_.since);
  }
  log_info("the context is there again, after {} ms", (now - change_.since).value / 1000);
  return true;
}

// Who is parked goes on waiting: a part of its reply is there.
void Scheduler::give_up_waiting() {
  for (const auto& sequence : waiting_) {
    waiting_count_.fetch_sub(1, std::memory_order_relaxed);
    finish(*sequence, FinishReason::failed, FailureKind::no_engine);
  }
  waiting_.clear();
  slot_desk_.give_up_waiting();
}

}  // namespace fermata::scheduler
