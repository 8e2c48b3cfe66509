#include "scheduler/scheduler.h"

#include "base/check.h"
#include "base/log.h"
#include "kv/disk_spill.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fermata::scheduler {
namespace {

constexpr Micros look_again_after{100'000};

// Where the budget is nearly used, an idle conversation is safer in the pool.
Bytes cache_share_for_idle(const std::optional<Bytes>& budget) {
  return budget ? *budget * 3 / 4 : Bytes(std::numeric_limits<std::int64_t>::max());
}

// Whether bytes of parked sequences may go on to what is slower than RAM. Without overcommit nobody
// is parked, but for a change that failed.
bool spills(const SchedulerOptions& options) {
  const bool keeps_bytes = options.preempt_ram != std::optional(Bytes(0)) || options.strictly_exact;
  const bool is_wanted = options.overcommit && options.page_ram > Bytes(0) && keeps_bytes;
  return is_wanted && (options.make_spill || options.archive.store != nullptr);
}

std::unique_ptr<kv::Spill> make_spill(const SchedulerOptions& options, store::Kind kind) {
  if (!spills(options)) return nullptr;
  if (options.make_spill) return options.make_spill();
  return std::make_unique<kv::DiskSpill>(options.archive, kind);
}

}  // namespace

Scheduler::Scheduler(engine::Engine& engine, const engine::Vocabulary& vocabulary,
                     const Clock& clock, const SchedulerOptions& options)
    : engine_(engine),
      vocabulary_(vocabulary),
      clock_(clock),
      options_(options),
      chunk_(options.deterministic ? engine.limits().ubatch : Tokens(0)),
      shifts_(options.context_shift && engine.capabilities().shift),
      inbox_(options.waiting_max + 1),
      commands_(options.holds_max),
      questions_(options.questions_max),
      sleep_(options.sleep, clock.now()),
      embeddings_(options.embedder, options.waiting_max, waiting_count_, stats_),
      pool_(engine_, {.budgets = {.preempt = options.preempt_ram,
                                  .cache = options.cache_ram,
                                  .passing = spills(options) ? options.page_ram : Bytes(0)},
                      .block = options.block,
                      .chunk = chunk_,
                      .cache_min = options.cache_min}),
      archive_(options.archive, pool_, !engine.capabilities().move_ranges),
      spilling_(pool_, stats_, make_spill(options, archive_.kind())),
      page_desk_(options.archive, pool_, archive_.kind(), engine.range_check()),
      slot_desk_({.files = options.slot_files,
                  .archive = options.archive,
                  .evict = [this](Seat seat) { evict(seat); },
                  .has_engine = [this] { return !change_.absent; },
                  .price = [this](Tokens tokens) { return price_of(tokens); }},
                 engine_, pool_, archive_, clock),
      last_request_(static_cast<std::size_t>(engine.limits().seats)),
      unsaved_(static_cast<std::size_t>(engine.limits().seats)),
      bytes_per_token_(options.bytes_per_token) {
  FERMATA_CHECK(!options.deterministic || (engine.geometry().layout == Layout::split &&
                                           engine.capabilities().one_sequence_per_ubatch),
                "an engine that computes sequences together cannot be deterministic");
  FERMATA_CHECK(!options.context_shift || (options.overcommit && !options.deterministic),
                "shifts take cells that were promised, and cannot be computed again");
  board_.update([&](Status& status) {
    status.geometry = engine_.geometry();
    status.limits = engine_.limits();
    status.seats.resize(static_cast<std::size_t>(engine_.limits().seats));
  });
  publish();
}

Scheduler::~Scheduler() {
  // Every accepted request ends in exactly one final event, also when the loop never ran again.
  inbox_.close();
  drain_inbox();
  end_all(FinishReason::failed, FailureKind::stopping);
  refuse_commands();
  refuse_change();
  refuse_questions();
}

std::shared_ptr<EventChannel> Scheduler::open_channel() {
  return std::make_shared<EventChannel>(options_.events_max, [this] { inbox_.poke(); });
}

SubmitOutcome Scheduler::submit(std::vector<Submission>& submissions) {
  FERMATA_CHECK(!submissions.empty(), "a submission of nothing");
  if (stopping_.load(std::memory_order_acquire)) return SubmitOutcome::stopping;
  const auto limit = static_cast<std::int64_t>(options_.waiting_max);
  const auto n = static_cast<std::int64_t>(submissions.size());
  if (waiting_count_.fetch_add(n, std::memory_order_relaxed) + n > limit) {
    waiting_count_.fetch_sub(n, std::memory_order_relaxed);
    stats_.requests_refused_full.add(submissions.size());
    return SubmitOutcome::queue_full;
  }
  for (Submission& submission : submissions) submission.submitted = clock_.now();
  switch (inbox_.push(std::move(submissions))) {
    case PushOutcome::pushed:
      stats_.requests_accepted.add(static_cast<std::uint64_t>(n));
      return SubmitOutcome::accepted;
    case PushOutcome::full:
      waiting_count_.fetch_sub(n, std::memory_order_relaxed);
      stats_.requests_refused_full.add(static_cast<std::uint64_t>(n));
      return SubmitOutcome::queue_full;
    case PushOutcome::closed:
      break;
  }
  waiting_count_.fetch_sub(n, std::memory_order_relaxed);
  return SubmitOutcome::stopping;
}

SubmitOutcome Scheduler::embed(EmbedJob& job) {
  switch (embeddings_.push(job)) {
    case PushOutcome::pushed:
      stats_.requests_accepted.add();
      inbox_.poke();
      return SubmitOutcome::accepted;
    case PushOutcome::full:
      stats_.requests_refused_full.add();
      return SubmitOutcome::queue_full;
    case PushOutcome::closed:
      break;
  }
  return SubmitOutcome::stopping;
}

void Scheduler::stop_gracefully() {
  stop_holding();
  stopping_.store(true, std::memory_order_release);
  embeddings_.close();
  inbox_.close();
}

void Scheduler::stop_now() {
  stopping_now_.store(true, std::memory_order_release);
  stop_gracefully();
  inbox_.poke();
}

std::int64_t Scheduler::retry_after_seconds() const {
  const auto finished = static_cast<std::int64_t>(stats_.requests_finished.value());
  if (finished == 0) return 1;
  const auto work_us =
      static_cast<std::int64_t>(stats_.prompt_us.value() + stats_.predicted_us.value());
  const std::int64_t each_us = work_us / finished / std::max(board_.limits().seats, 1);
  return std::clamp<std::int64_t>(each_us / 1'000'000, 1, 60);
}

void Scheduler::drain_inbox() {
  inbox_.drain(from_outside_.submissions);
  for (std::vector<Submission>& submissions : from_outside_.submissions) {
    for (Submission& submission : submissions) {
      enqueue(std::make_unique<Sequence>(
          std::move(submission),
          SequenceOptions{options_.deterministic, options_.shows_texts, shifts_}));
    }
  }
  from_outside_.submissions.clear();
}

void Scheduler::enqueue(std::unique_ptr<Sequence> sequence) {
  FailureKind failure = FailureKind::none;
  const Request& request = sequence->request();
  if (sequence->prompt_length() >= engine_.limits().window) {
    failure = FailureKind::larger_than_window;
  } else if (request.seat && (request.seat->value < 0 || request.seat->value >= pool_.seats())) {
    failure = FailureKind::no_such_seat;
  }
  if (failure != FailureKind::none) {
    waiting_count_.fetch_sub(1, std::memory_order_relaxed);
    finish(*sequence, FinishReason::failed, failure);
    return;
  }
  const auto behind = [](std::int32_t priority, const std::unique_ptr<Sequence>& other) {
    return priority > other->request().priority;
  };
  const auto at = std::upper_bound(waiting_.begin(), waiting_.end(), request.priority, behind);
  waiting_.insert(at, std::move(sequence));
}

void Scheduler::drop_abandoned() {
  std::erase_if(waiting_, [this](std::unique_ptr<Sequence>& sequence) {
    if (!sequence->abandoned()) return false;
    waiting_count_.fetch_sub(1, std::memory_order_relaxed);
    finish(*sequence, FinishReason::cancelled, FailureKind::none);
    return true;
  });
  for (auto* list : {&running_, &parked_}) {
    for (auto& sequence : *list) {
      if (!sequence->abandoned()) continue;
      finish(*sequence, FinishReason::cancelled, FailureKind::none);
      sequence.reset();
    }
  }
  remove_finished();
}

void Scheduler::end_all(FinishReason reason, FailureKind failure) {
  for (auto& sequence : waiting_) {
    waiting_count_.fetch_sub(1, std::memory_order_relaxed);
    finish(*sequence, reason, failure);
  }
  waiting_.clear();
  for (auto* list : {&running_, &parked_}) {
    for (auto& sequence : *list) finish(*sequence, reason, failure);
    list->clear();
  }
}

// Whether somebody else of its group computes their prompt, so that it can start from those cells.
// `is_first`: of those that wait.
bool Scheduler::awaits_prompt(const Sequence& sequence, bool is_first) const {
  if (sequence.group() == GroupId() || !engine_.capabilities().share_prefix) return false;
  bool started = false;
  for (const auto* list : {&running_, &parked_}) {
    for (const auto& other : *list) {
      if (other->group() != sequence.group()) continue;
      // The last row is everybody's own: there is a token to sample from it.
      if (other->prompt_left() > Tokens(1)) return true;
      started = true;
    }
  }
  return !is_first && !started;
}

// Without cache_prompt only from the cells of the same group.
kv::PrefixMatch Scheduler::match(const Request& request, Seat seat) const {
  const bool is_sibling = request.group != GroupId() &&
                          std::any_of(running_.begin(), running_.end(), [&](const auto& other) {
                            return other->seat() == seat && other->group() == request.group;
                          });
  return request.cache_prompt || is_sibling ? pool_.match(seat, request.prompt, request.owner)
                                            : kv::PrefixMatch{};
}

// Prefixes are looked up only for as many requests as there are seats to take.
void Scheduler::view_waiting() {
  views_.waiting.clear();
  views_.prefixes.clear();
  std::size_t open = 0;
  for (const policy::SeatView& seat : views_.seats) open += seat.use != policy::SeatUse::busy;
  const std::size_t n_seats = views_.seats.size();
  views_.prefixes.reserve(n_seats * n_seats);
  GroupId last;
  find_starters(running_, views_.starters);
  for (const auto& sequence : waiting_) {
    const bool is_first = std::exchange(last, sequence->group()) != sequence->group();
    const Request& request = sequence->request();
    policy::WaitingView view{request.id,
                             sequence->prompt_length(),
                             cells_needed(request, engine_),
                             request.max_tokens,
                             request.priority,
                             seat_wanted(request, pool_.seats()),
                             {},
                             sequence->is_held(),
                             sequence->group(),
                             awaits_prompt(*sequence, is_first)};
    const std::optional<Seat> seat = seat_wanted(request, pool_.seats());
    const bool seat_taken = seat && pool_.use(*seat) == kv::SeatUse::busy;
    const bool may_start = open > 0 && !seat_taken && !view.held && !view.awaits_prompt;
    if (may_start && awaits_beginning(*sequence)) {
      view.awaits_prompt = true;
    } else if (may_start) {
      --open;
      view.awaits_prompt = is_loading(*sequence);
      const std::size_t first = views_.prefixes.size();
      for (const policy::SeatView& seat : views_.seats) {
        const kv::PrefixMatch found = match(request, seat.seat);
        views_.prefixes.push_back({found.own, found.shareable});
      }
      view.prefixes = std::span(views_.prefixes).subspan(first, n_seats);
      if (request.cache_prompt) {
        const kv::Offer offer = pool_.offer(request.prompt, request.owner);
        view.shelf = {offer.reuse, offer.cells};
      }
    }
    views_.waiting.push_back(view);
  }
}

void Scheduler::view_running(Micros now) {
  views_.running.clear();
  for (const auto& sequence : running_) {
    const bool blocked = sequence->look_at_room(now);
    views_.running.push_back({sequence->request().id, sequence->seat(), sequence->phase(),
                              sequence->rows_left(), blocked, sequence->blocked_for(now),
                              sequence->remaining(), sequence->since_start(),
                              sequence->parking().parks(), sequence->replaying(),
                              sequence->request().priority, pool_.mirrored(sequence->seat()),
                              sequence->is_held(), sequence->prompt_left(), sequence->group()});
  }
  for (policy::RunningView& view : views_.running) {
    if (view.group == GroupId()) continue;
    kv::SeatSet seats;
    std::optional<Seat> first;
    for (const policy::RunningView& other : views_.running) {
      if (other.group != view.group) continue;
      seats.set(static_cast<std::size_t>(other.seat.value));
      if (!first) first = other.seat;
    }
    if (*first != view.seat) view.shared = pool_.ledger().shared(*first, view.seat);
    view.together = pool_.ledger().exclusive(seats);
  }
}

policy::View Scheduler::build_view() {
  views_.seats.clear();
  for (std::int32_t s = 0; s < pool_.seats(); ++s) {
    const Seat seat{s};
    views_.seats.push_back({seat, static_cast<policy::SeatUse>(pool_.use(seat)),
                            pool_.ledger().length(seat), pool_.ledger().exclusive(seat),
                            pool_.last_used(seat), pool_.uncopied(seat), pool_.is_kept(seat),
                            pool_.rows_since(seat)});
  }
  view_waiting();
  const Micros now = clock_.now();
  view_running(now);
  std::int32_t decoding = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    decoding += goes_row_by_row(*running_[i], options_.deterministic) && !views_.running[i].blocked;
  }
  view_parked();
  policy::View view;
  view.now = now;
  view.layout = engine_.geometry().layout;
  view.cells = engine_.limits().cells;
  view.cells_per_token = engine_.capabilities().cells_per_token;
  view.overcommit = options_.overcommit;
  view.cells_free = view.cells - pool_.ledger().used();
  view.cells_unpromised = pool_.unpromised();
  view.cells_busy = pool_.used_by_busy();
  view.cells_outstanding = pool_.outstanding();
  view.no_room = no_room_in_a_row_;
  view.batch_max = engine_.limits().batch;
  view.chunk = chunk_;
  view.step_budget = options_.step_budget;
  view.rates = pace_.rates(decoding);
  view.seats = views_.seats;
  view.running = views_.running;
  if (!is_moving()) {
    view.waiting = views_.waiting;
    view.parked = views_.parked;
  }
  view.preempt = options_.preempt;
  view.can_swap = pool_.can_restore();
  view.bytes_per_sequence = image_overhead_;
  view.bytes_per_token = bytes_per_token_;
  view.block = options_.block;
  if (engine_.capabilities().ranges_are_cheap && options_.preempt.enabled) {
    view.blocks_max = copy_pace_.blocks();
  }
  if (options_.copies_idle || archive_.is_on()) {
    view.copies_max = std::max(copy_pace_.blocks(), running_.empty() ? 1 : 0);
  }
  view.clears_idle = options_.copies_idle && engine_.capabilities().ranges_are_cheap &&
                     pool_.vault().cached() <= cache_share_for_idle(options_.cache_ram);
  view.slower_left = pool_.vault().passing_left();
  if (options_.preempt_ram) {
    view.ram_left = *options_.preempt_ram - pool_.vault().parked();
    view.mirror_ram_left = *view.ram_left - pool_.vault().mirrored();
  }
  return view;
}

void Scheduler::apply(const policy::Plan& plan) {
  for (Seat seat : plan.evict) evict(seat);
  park(plan);
  for (std::size_t running : plan.fail) {
    finish(*running_[running], FinishReason::failed, FailureKind::pool_full);
    running_[running].reset();
  }
  spilling_.fetch(plan, parked_);
  resume(plan);
  for (const policy::Admission& admission : plan.admit) admit(admission);
  mirror(plan);
  copy_idle(plan);
  if (!options_.overcommit && engine_.geometry().layout == Layout::pooled &&
      engine_.capabilities().cells_per_token) {
    FERMATA_CHECK(pool_.unpromised() >= Tokens(0), "more cells promised than there are");
  }
}

// What it was promised, where cells are: a wider window since then is not its own.
Tokens Scheduler::window_of(const Sequence& sequence) const {
  const Tokens window = engine_.limits().window;
  const bool counts = sequence.is_seated() && engine_.capabilities().cells_per_token;
  const Tokens promised = counts ? pool_.promised(sequence.seat()) : Tokens(0);
  return promised > Tokens(0) ? std::min(window, promised + Tokens(1)) : window;
}

kv::Reservation Scheduler::promise(Seat seat, const Request& request) {
  return options_.overcommit ? kv::Reservation()
                             : pool_.reserve(seat, worst_case(request, engine_));
}

void Scheduler::admit(const policy::Admission& admission) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& sequence) {
    return sequence->request().id == admission.id;
  });
  FERMATA_CHECK(found != waiting_.end(), "admitting what does not wait");
  std::unique_ptr<Sequence> sequence = std::move(*found);
  waiting_.erase(found);
  waiting_count_.fetch_sub(1, std::memory_order_relaxed);

  PrefixSource source = PrefixSource::pool;
  if (admission.fetched > Tokens(0)) {
    const bool was_stored = sequence->search() == Sequence::Search::found;
    source = was_stored ? PrefixSource::disk : PrefixSource::ram;
  }
  const Tokens reused = take_seat(admission, sequence->request());
  pool_.give_to(admission.seat, sequence->request().owner, sequence->request().conversation);
  kv::Reservation reservation = promise(admission.seat, sequence->request());
  sequence->admitted(admission.seat, reused, source, std::move(reservation), clock_.now());
  stats_.queue_time.observe(clock_.now() - sequence->submitted());
  stats_.prompt_tokens_cached.add(static_cast<std::uint64_t>(reused.value));
  last_request_[static_cast<std::size_t>(admission.seat.value)] = sequence->shared_request();
  running_.push_back(std::move(sequence));
}

// Everything that shows the end is in place before the client hears of it: whoever has its answer
// sees its slot idle and its tokens counted.
void Scheduler::finish(Sequence& sequence, FinishReason reason, FailureKind failure) {
  const Tokens window = window_of(sequence);
  if (sequence.is_seated()) {
    const Seat seat = sequence.seat();
    // Cells of a broken engine are nothing that a later request could start from.
    pool_.release(seat, failure != FailureKind::engine_broken, clock_.now());
    unsaved_[static_cast<std::size_t>(seat.value)] = true;
    board_.update([&](Status& status) {
      show(sequence, status);
      status.seats[static_cast<std::size_t>(seat.value)].is_processing = false;
      --status.n_processing;
    });
  }
  spilling_.end(sequence.request().id, failure == FailureKind::stopping);
  stats_.requests_finished.add();
  if (reason == FinishReason::cancelled) stats_.requests_cancelled.add();
  if (reason == FinishReason::failed) stats_.requests_failed.add();
  sequence.finish(reason, failure, window, clock_.now());
}

void Scheduler::show(const Sequence& sequence, Status& status) const {
  SeatStatus& seat = status.seats[static_cast<std::size_t>(sequence.seat().value)];
  seat.resident = pool_.ledger().length(sequence.seat());
  seat.prompt = sequence.prompt_length();
  seat.prompt_cached = sequence.cached();
  seat.prompt_processed = sequence.prompt_done() - sequence.cached();
  seat.predicted = sequence.predicted();
  seat.remaining = sequence.remaining();
  seat.swaps = sequence.parking().swaps;
  seat.recomputes = sequence.parking().recomputes;
  seat.has_new_line = sequence.has_new_line();
  if (options_.shows_texts) seat.text = sequence.text();
}

void Scheduler::remove_finished() {
  std::erase(running_, nullptr);
  std::erase(parked_, nullptr);
}

void Scheduler::publish() {
  board_.update([this](Status& status) {
    for (std::int32_t s = 0; s < pool_.seats(); ++s) {
      const auto index = static_cast<std::size_t>(s);
      SeatStatus& seat = status.seats[index];
      seat.seat = Seat(s);
      seat.is_processing = pool_.use(Seat(s)) == kv::SeatUse::busy;
      seat.resident = pool_.ledger().length(Seat(s));
      if (seat.request != last_request_[index]) seat.request = last_request_[index];
    }
    for (const auto& sequence : running_) show(*sequence, status);
    publish_parked(status);
    publish_cache();
    status.n_processing = static_cast<std::int64_t>(running_.size());
    status.n_waiting = waiting_count_.load(std::memory_order_relaxed);
    status.is_changing = change_.now != nullptr;
    status.change_stage = !change_.now ? "none" : is_moving() ? "moving" : "building";
    status.is_absent = change_.absent.has_value();
    status.depth = sleep_.depth();
    status.cells_used = pool_.ledger().used();
  });
}

bool Scheduler::tick() {
  const Micros began = clock_.now();
  const auto step_before = static_cast<std::int64_t>(stats_.steps_us.value());
  drain_inbox();
  if (stopping_now_.load(std::memory_order_acquire)) {
    end_all(FinishReason::failed, FailureKind::stopping);
    refuse_change();
    embeddings_.end_all();
  }
  drop_abandoned();
  take_commands();
  take_arrivals();
  bool worked = save_idle(kv::SaveAt::turn_end);
  worked |= change_geometry();
  worked |= take_questions();
  if (embeddings_.work()) {
    sleep_.stir(clock_.now());
    worked = true;
  }
  worked |= rest();
  const bool has_work =
      !waiting_.empty() || !running_.empty() || !parked_.empty() || anything_to_copy();
  if (!change_.absent && has_work) {
    const policy::View view = build_view();
    (options_.overcommit ? policy::plan_preempting : policy::plan_worst_case)(view, plan_);
    if (const auto fault = policy::find_fault(view, plan_)) {
      log_error("a plan does not respect its view: {}", *fault);
      FERMATA_CHECK(false, "a plan does not respect its view");
    }
    // Rows first refer to running_ as it was viewed, so admissions append behind.
    apply(plan_);
    write_receipts();
    const bool moved = !plan_.admit.empty() || !plan_.evict.empty() || !plan_.park.empty() ||
                       !plan_.fail.empty() || !plan_.resume.empty() || !plan_.copy.empty();
    worked = step(plan_) || moved || worked;
  } else {
    write_receipts();
  }
  pool_.settle();
  publish();
  hand_out_receipts();
  const std::int64_t in_step = static_cast<std::int64_t>(stats_.steps_us.value()) - step_before;
  stats_.tick_us.add(static_cast<std::uint64_t>(
      std::max<std::int64_t>((clock_.now() - began).value - in_step, 0)));
  return worked;
}

void Scheduler::run() {
  while (true) {
    if (tick()) continue;
    const bool done = waiting_.empty() && running_.empty() && parked_.empty();
    const bool is_last = inbox_.size() == 0 && !embeddings_.is_waited_for();
    if (done && stopping_.load(std::memory_order_acquire) && is_last) {
      refuse_change();
      (void)save_idle(kv::SaveAt::shutdown);
      refuse_questions();
      return;
    }
    // Who is kept out by somebody that does not read gets in after a time, without any event.
    // Nor does the time to sleep; and what is to be written before that takes its time.
    const auto most = done ? sleep_.next(clock_.now()) : std::optional(look_again_after);
    inbox_.wait(most ? std::optional(std::max(*most, look_again_after)) : std::nullopt);
  }
}

}  // namespace fermata::scheduler
