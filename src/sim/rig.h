// A scheduler on the fake engine, ticked by its owner: no thread, no real time. Simulations and
// tests stand on it.
#pragma once

#include "base/clock.h"
#include "engine/fake/fake_vocabulary.h"
#include "scheduler/scheduler.h"
#include "sim/tick_spill.h"
#include "sim/tick_workshop.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fermata::sim {

struct RigSpec {
  engine::fake::FakeModelSpec model;
  Geometry geometry{.n_ctx = Tokens(256), .n_parallel = 4};
  engine::EngineOptions engine{.n_batch = Tokens(64), .n_ubatch = Tokens(16)};
  scheduler::SchedulerOptions scheduler;
  std::uint64_t workshop_seed = 1;  // Of how long it builds and what fails.
  std::optional<SpillSpec> spill;   // None: nothing is slower than RAM.
};

struct Ask {
  std::string prompt;
  std::int64_t max_tokens = 16;
  std::vector<std::string> stop = {};
  std::string grammar = {};  // See fake_vocabulary.h.
  bool cache_prompt = true;
  std::optional<Seat> seat = {};
  std::int32_t priority = 0;
  float temperature = 0.0F;
  std::uint32_t seed = 7;
  std::int32_t n_probs = 0;
  std::int32_t n_indent = 0;
  Micros predict_time_max = {};
  std::int64_t n_keep = 0, n_discard = 0;
  bool wants_progress = false, wants_timings = false;
};

// One client: what it asked and everything it was told.
struct Client {
  RequestId id;
  std::shared_ptr<scheduler::EventChannel> channel;
  scheduler::SubmitOutcome outcome = scheduler::SubmitOutcome::accepted;
  std::string text;
  std::vector<TokenEvent> tokens;
  int preempted = 0, resumed = 0;             // Notices.
  int reconfigured = 0;                       // The same.
  std::vector<std::size_t> tokens_at_notice;  // Read before each.
  std::vector<ProgressEvent> progress;
  std::optional<FinalEvent> final;
  int n_final = 0;

  // Takes what the channel holds. True when there was an event.
  bool read();
};

class Rig {
 public:
  explicit Rig(const RigSpec& spec);

  std::unique_ptr<Client> submit(const Ask& ask);
  // Choices of one request: a group, each with the next seed.
  std::vector<std::unique_ptr<Client>> submit(const Ask& ask, std::size_t choices);
  // Several prompts in one submission, and so many choices of each, in their order. REQUIRES: all
  // have the same priority.
  std::vector<std::unique_ptr<Client>> submit(std::span<const Ask> asks, std::size_t choices);
  // A command of an operator; its reply gets the receipt at the next tick.
  std::shared_ptr<scheduler::HoldReply> hold(scheduler::HoldAction action, RequestId id);
  std::shared_ptr<scheduler::HoldReply> hold(scheduler::HoldAction action, Seat seat);
  // Its reply gets the receipt; none when another change is under way.
  std::shared_ptr<scheduler::ChangeReply> change(const reconfigure::Change& change);
  // Ticks until no work is left. REQUIRES (checked): that takes no more than `ticks_max`.
  // Every client in `readers` reads after each tick.
  void run(const std::vector<Client*>& readers, int ticks_max = 100'000);
  bool tick() { return scheduler_->tick(); }

  scheduler::Scheduler& scheduler() { return *scheduler_; }
  scheduler::Status status() const { return scheduler_->status().read(); }
  engine::fake::FakeEngine& engine() { return workshop_->engine(); }
  TickWorkshop& workshop() { return *workshop_; }
  // From now on nothing fails, whoever is asked.
  void calm() {
    workshop_->calm();
    if (spill_ != nullptr) spill_->calm();
  }
  // As the scheduler tells them, also while no engine is there.
  engine::EngineLimits limits() const { return scheduler_->status().limits(); }
  FakeClock& clock() { return clock_; }

 private:
  FakeClock clock_;
  std::unique_ptr<engine::Vocabulary> vocabulary_;
  std::unique_ptr<TickWorkshop> workshop_;
  TickSpill* spill_ = nullptr;  // The scheduler's.
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<Client> prepare(const Ask& ask, std::size_t choice, GroupId group,
                                  std::vector<scheduler::Submission>& submissions);

  std::uint64_t next_id_ = 1;
};

// Every sequence is computed as if it were alone, prompts in pieces of spec.engine.n_ubatch; the
// model's text depends on it.
void make_deterministic(RigSpec& spec);

// What the request gets alone on a fresh server with room for everything: the oracle. With `chunk`
// on a deterministic one.
Client solo_run(const engine::fake::FakeModelSpec& model, const Ask& ask,
                Tokens window = Tokens(4096), Tokens chunk = Tokens(0), bool context_shift = false);

}  // namespace fermata::sim
