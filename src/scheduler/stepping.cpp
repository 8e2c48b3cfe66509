// The scheduler's part in a step: the rows that were planned, what came of them, whom that ends.
#include "base/log.h"
#include "core/context_shift.h"
#include "scheduler/scheduler.h"

#include <utility>

namespace fermata::scheduler {
namespace {

// An engine that has no room though the ledger says so, this often in a row, is broken.
constexpr std::int32_t no_room_in_a_row_max = 16;

}  // namespace

bool Scheduler::step(const policy::Plan& plan) {
  if (plan.run.empty()) {
    no_room_in_a_row_ = 0;  // Who found none has left; nobody else must wait for its next step.
    remove_finished();
    return false;
  }
  rows_.groups.clear();
  for (const policy::Run& run : plan.run)
    rows_.groups.push_back(running_[run.running]->rows(run.rows));
  rows_.results.resize(rows_.groups.size());
  const Micros began = clock_.now();
  const engine::StepOutcome outcome = engine_.step(rows_.groups, rows_.results);
  account_step(outcome, plan, clock_.now() - began);
  switch (outcome) {
    case engine::StepOutcome::done:
    case engine::StepOutcome::interrupted:
      no_room_in_a_row_ = 0;
      take_results(plan);
      break;
    case engine::StepOutcome::no_room:
      handle_no_room();
      break;
    case engine::StepOutcome::broken:
      handle_broken();
      break;
  }
  remove_finished();
  return true;
}

void Scheduler::account_step(engine::StepOutcome outcome, const policy::Plan& plan, Micros took) {
  stats_.steps.add();
  stats_.steps_us.add(static_cast<std::uint64_t>(took.value));
  stats_.busy_seats_in_steps.add(plan.run.size());
  if (outcome != engine::StepOutcome::done) return;  // Says nothing about what rows cost.
  Tokens decode_rows{0}, prefill_rows{0};
  for (const policy::Run& run : plan.run) {
    const Sequence& sequence = *running_[run.running];
    const bool is_single = goes_row_by_row(sequence, options_.deterministic);
    (is_single ? decode_rows : prefill_rows) += run.rows;
    if (sequence.replaying()) continue;
    (is_single ? stats_.predicted_us : stats_.prompt_us)
        .add(static_cast<std::uint64_t>(took.value));
  }
  pace_.observe(static_cast<std::int32_t>(decode_rows.value), prefill_rows, took);
  copy_pace_.stepped(took);
}

void Scheduler::take_results(const policy::Plan& plan) {
  const Micros now = clock_.now();
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    Sequence& sequence = *running_[plan.run[i].running];
    engine::GroupResult& result = rows_.results[i];
    const bool prefill = sequence.phase() == policy::Phase::prefill;
    const auto computed = static_cast<std::size_t>(result.computed.value);
    pool_.appended(sequence.seat(), rows_.groups[i].tokens.first(computed));
    const Tokens fresh = sequence.advanced(result.computed, now);
    stats_.recomputed_tokens.add(static_cast<std::uint64_t>((result.computed - fresh).value));
    if (prefill) stats_.prompt_tokens.add(static_cast<std::uint64_t>(fresh.value));
    const Tokens cells = pool_.ledger().length(sequence.seat());
    const Tokens window = window_of(sequence);
    if (cells.value > stats_.tokens_max.value()) stats_.tokens_max.set(cells.value);

    const bool in_prompt = prefill && sequence.predicted() == Tokens(0) && fresh > Tokens(0);
    if (in_prompt && sequence.request().wants_progress) sequence.tell_progress(now);
    std::optional<FinishReason> reason;
    FailureKind failure = FailureKind::none;
    if (result.sampler_failed) {
      reason = FinishReason::failed;
      failure = FailureKind::sampler_failed;
    } else if (result.sampled) {
      stats_.predicted_tokens.add();
      reason = sequence.accept(std::move(*result.sampled), vocabulary_, cells, window, now);
    } else if (prefill && sequence.rows_left() == Tokens(0)) {
      if (sequence.remaining() == Tokens(0)) reason = FinishReason::limit;
    }
    if (reason) {
      finish(sequence, *reason, failure);
      running_[plan.run[i].running].reset();
    } else if (shifts_ && cells + Tokens(1) >= window && !shift(sequence)) {
      handle_broken();
      return;
    }
  }
}

// Makes room in a window that is full. False: the engine is broken.
bool Scheduler::shift(Sequence& sequence) {
  const Seat seat = sequence.seat();
  std::vector<TokenId> tokens(pool_.tokens(seat).begin(), pool_.tokens(seat).end());
  const ContextShift by =
      context_shift_of(sequence.request(), Tokens(static_cast<std::int64_t>(tokens.size())),
                       engine_.limits().window, vocabulary_.special().adds_bos);
  if (pool_.shift(seat, by.keep, by.discard) == kv::Shifted::broken) return false;
  stats_.context_shifts.add();
  const auto gap = tokens.begin() + by.keep.value;
  tokens.erase(gap, gap + by.discard.value);
  sequence.shifted(std::move(tokens), pool_.ledger().length(seat), clock_.now());
  return true;
}

// The plan had counted on cells that are not there: the next one makes more room.
void Scheduler::handle_no_room() {
  stats_.no_room_steps.add();
  if (++no_room_in_a_row_ < no_room_in_a_row_max) return;
  log_error("the engine has had no room {} times in a row; it is started over",
            no_room_in_a_row_max);
  handle_broken();
}

void Scheduler::handle_broken() {
  stats_.broken_steps.add();
  remove_finished();
  log_error("the library failed in a step; {} running requests end", running_.size());
  pool_.drop_everything();
  for (auto& sequence : running_) {
    finish(*sequence, FinishReason::failed, FailureKind::engine_broken);
  }
  running_.clear();
  no_room_in_a_row_ = 0;
}

}  // namespace fermata::scheduler
