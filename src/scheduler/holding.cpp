// The scheduler's part in parking by hand. A command marks its request as held or not; the policy
// sees the mark, and the receipt comes once the plan that heeds it is applied and published.
#include "scheduler/scheduler.h"

#include <algorithm>
#include <utility>

namespace fermata::scheduler {

SubmitOutcome Scheduler::hold(HoldCommand command) {
  command.asked = clock_.now();
  switch (commands_.push(std::move(command))) {
    case PushOutcome::pushed:
      inbox_.poke();
      return SubmitOutcome::accepted;
    case PushOutcome::full:
      return SubmitOutcome::queue_full;
    case PushOutcome::closed:
      break;
  }
  return SubmitOutcome::stopping;
}

void Scheduler::stop_holding() {
  stopping_holds_.store(true, std::memory_order_release);
  commands_.close();
  inbox_.poke();
}

void Scheduler::take_commands() {
  if (stopping_holds_.load(std::memory_order_acquire)) {
    refuse_commands();
    end_held();
    return;
  }
  commands_.drain(carried_out_.commands);
  std::erase_if(carried_out_.commands, [this](HoldCommand& command) {
    const HoldOutcome outcome = carry_out(command);
    if (outcome == HoldOutcome::done) return false;
    command.reply->give({.outcome = outcome, .id = command.id.value_or(RequestId())});
    return true;
  });
}

// From then on the command's id names the request, wherever it goes.
HoldOutcome Scheduler::carry_out(HoldCommand& command) {
  const bool park = command.action == HoldAction::park;
  Sequence* sequence = nullptr;
  if (command.id) {
    sequence = find(*command.id);
    if (sequence == nullptr || sequence->request().owner != command.owner) {
      return HoldOutcome::no_such_request;
    }
    if (command.seat && sequence->last_seat() != command.seat) return HoldOutcome::not_on_seat;
  } else {
    sequence = park ? find_running(*command.seat) : find_held(*command.seat, command.owner);
    if (sequence == nullptr || sequence->request().owner != command.owner) {
      return HoldOutcome::nobody_there;
    }
  }
  command.id = sequence->request().id;
  if (!park && !sequence->is_parked() && !sequence->is_held()) return HoldOutcome::not_parked;
  const auto mark = [park](Sequence& of) { park ? of.hold() : of.let_go(); };
  if (sequence->group() == GroupId()) {
    mark(*sequence);
    return HoldOutcome::done;
  }
  // Choices of one request move together.
  for (const auto* list : {&running_, &parked_, &waiting_}) {
    for (const auto& other : *list) {
      if (other->group() == sequence->group()) mark(*other);
    }
  }
  return HoldOutcome::done;
}

Sequence* Scheduler::find_running(Seat seat) const {
  for (const auto& sequence : running_) {
    if (sequence->seat() == seat) return sequence.get();
  }
  return nullptr;
}

// Of several that were parked from one seat, the last.
Sequence* Scheduler::find_held(Seat seat, const Owner& owner) const {
  const auto left = [&](const auto& s) {
    return s->is_held() && s->last_seat() == seat && s->request().owner == owner;
  };
  const auto found = std::find_if(parked_.rbegin(), parked_.rend(), left);
  return found == parked_.rend() ? nullptr : found->get();
}

// Also while a plan is applied, when who has moved leaves a gap.
Sequence* Scheduler::find(RequestId id) const {
  for (const auto* list : {&running_, &parked_, &waiting_}) {
    for (const auto& sequence : *list) {
      if (sequence && sequence->request().id == id) return sequence.get();
    }
  }
  return nullptr;
}

// What the plan made of them; their numbers are those of this moment, before the step.
void Scheduler::write_receipts() {
  carried_out_.receipts.clear();
  for (const HoldCommand& command : carried_out_.commands) {
    HoldReceipt receipt;
    receipt.id = *command.id;
    if (const Sequence* sequence = find(receipt.id)) {
      receipt.seat = sequence->last_seat();
      receipt.is_out = !sequence->is_seated() && (sequence->is_parked() || sequence->is_held());
      if (sequence->is_parked()) {
        receipt.tokens = sequence->computed();
        receipt.bytes = sequence->image().size();
        if (receipt.tokens > Tokens(0)) receipt.mode = sequence->park_mode();
      }
    } else {
      receipt.outcome = HoldOutcome::no_such_request;
    }
    receipt.took = clock_.now() - command.asked;
    carried_out_.receipts.push_back(receipt);
  }
}

// Whoever has a receipt sees its effect in /slots and /metrics.
void Scheduler::hand_out_receipts() {
  for (std::size_t i = 0; i < carried_out_.commands.size(); ++i)
    carried_out_.commands[i].reply->give(carried_out_.receipts[i]);
  carried_out_.commands.clear();
}

// Nobody would let them back any more.
void Scheduler::end_held() {
  for (auto* list : {&waiting_, &parked_}) {
    std::erase_if(*list, [&](const std::unique_ptr<Sequence>& sequence) {
      if (!sequence->is_held()) return false;
      if (list == &waiting_) waiting_count_.fetch_sub(1, std::memory_order_relaxed);
      finish(*sequence, FinishReason::failed, FailureKind::stopping);
      return true;
    });
  }
}

void Scheduler::refuse_commands() {
  commands_.drain(carried_out_.commands);
  for (const HoldCommand& command : carried_out_.commands) {
    command.reply->give({.outcome = HoldOutcome::stopping, .id = command.id.value_or(RequestId())});
  }
  carried_out_.commands.clear();
}

}  // namespace fermata::scheduler
