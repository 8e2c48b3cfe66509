// A pooled engine seen by a policy, built up seat by seat.
#pragma once

#include "policy/policy.h"

#include <vector>

#include <gtest/gtest.h>

namespace fermata::policy {

// A pooled engine of `cells` cells, built up seat by seat. Nothing is shared but what share() says.
class Scene {
 public:
  explicit Scene(std::int64_t cells, int seats = 4) : cells_(cells) {
    for (int s = 0; s < seats; ++s) seats_.push_back({Seat(s), SeatUse::empty, {}, {}, {}});
    view_.overcommit = true;
    view_.can_swap = true;
    view_.bytes_per_token = Bytes(10);
    view_.batch_max = Tokens(512);
    view_.preempt.quantum = Tokens(8);
    view_.now = Micros(10'000'000);
  }

  Scene& idle(int seat, std::int64_t length, std::int64_t last_used) {
    hold(seat, SeatUse::idle, length).last_used = Micros(last_used);
    return *this;
  }
  SeatView& seat(int seat) { return seats_[static_cast<std::size_t>(seat)]; }
  RunningView& decoding(int seat, std::int64_t length, std::int64_t remaining = 100) {
    hold(seat, SeatUse::busy, length);
    RunningView running;
    running.id = RequestId(static_cast<std::uint64_t>(seat));
    running.seat = Seat(seat);
    running.phase = Phase::decode;
    running.remaining = Tokens(remaining);
    running_.push_back(running);
    return running_.back();
  }
  RunningView& reading(int seat, std::int64_t length, std::int64_t rows_left) {
    RunningView& running = decoding(seat, length);
    running.phase = Phase::prefill;
    running.rows_left = Tokens(rows_left);
    return running;
  }
  // The first n of its cells are another's too.
  RunningView& share(RunningView& running, std::int64_t n) {
    SeatView& seat = seats_[static_cast<std::size_t>(running.seat.value)];
    seat.exclusive -= Tokens(n);
    used_ -= Tokens(n);
    busy_ -= Tokens(n);
    return running;
  }
  RunningView& running(std::size_t i) { return running_[i]; }
  ParkedView& parked(std::int64_t cells, std::int64_t remaining = 100) {
    ParkedView parked;
    parked.cells = Tokens(cells);
    parked.remaining = Tokens(remaining);
    parked.parked_at = view_.now;
    parked_.push_back(parked);
    return parked_.back();
  }
  WaitingView& waiting(std::uint64_t id, std::int64_t prompt) {
    none_.resize(seats_.size());
    WaitingView waiting;
    waiting.id = RequestId(id);
    waiting.prompt = Tokens(prompt);
    waiting.remaining = Tokens(100);
    waiting_.reserve(16);
    waiting_.push_back(waiting);
    return waiting_.back();
  }

  // As the scheduler does it when no seat is open.
  void no_prefixes() { no_prefixes_ = true; }
  void hold_waiting(std::size_t i) { waiting_[i].held = true; }
  void hold_parked(std::size_t i) { parked_[i].held = true; }
  void hold_running(std::size_t i) { running_[i].held = true; }

  void wait_longer(Micros by) { view_.now += by; }

  View& view() { return view_; }
  const Plan& plan() {
    view_.cells = Tokens(cells_);
    view_.cells_free = view_.cells - used_;
    view_.cells_busy = busy_;
    view_.cells_unpromised = view_.cells_free;
    view_.seats = seats_;
    view_.running = running_;
    view_.parked = parked_;
    for (WaitingView& waiting : waiting_) waiting.prefixes = none_;
    if (no_prefixes_) waiting_.front().prefixes = {};
    view_.waiting = waiting_;
    (view_.overcommit ? plan_preempting : plan_worst_case)(view_, plan_);
    EXPECT_EQ(find_fault(view_, plan_).value_or(""), "");
    return plan_;
  }
  std::vector<int> parks() {
    std::vector<int> out;
    for (const Park& park : plan().park) out.push_back(running_[park.running].seat.value);
    return out;
  }
  std::vector<std::size_t> resumes() {
    std::vector<std::size_t> out;
    for (const Resume& resume : plan().resume) out.push_back(resume.parked);
    return out;
  }

 private:
  SeatView& hold(int seat, SeatUse use, std::int64_t length) {
    SeatView& view = seats_[static_cast<std::size_t>(seat)];
    view.use = use;
    view.length = view.exclusive = Tokens(length);
    used_ += Tokens(length);
    if (use == SeatUse::busy) busy_ += Tokens(length);
    running_.reserve(16);
    parked_.reserve(16);
    return view;
  }

  std::int64_t cells_;
  Tokens used_{0}, busy_{0};
  View view_;
  Plan plan_;
  std::vector<SeatView> seats_;
  std::vector<RunningView> running_;
  std::vector<ParkedView> parked_;
  std::vector<WaitingView> waiting_;
  std::vector<PrefixView> none_;
  bool no_prefixes_ = false;
};

}  // namespace fermata::policy
