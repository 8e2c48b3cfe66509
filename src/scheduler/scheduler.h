// The loop, and the only owner of sequences. One tick: drain the inbox, drop who went away, build
// the view, plan, check the plan, apply it, one engine step, events.
#pragma once

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/vocabulary.h"
#include "kv/archive.h"
#include "kv/pool.h"
#include "policy/pace.h"
#include "policy/policy.h"
#include "scheduler/embeddings.h"
#include "scheduler/hold.h"
#include "scheduler/sequence.h"
#include "scheduler/status.h"

#include <atomic>
#include <memory>
#include <vector>

namespace fermata::scheduler {

struct SchedulerOptions {
  std::size_t waiting_max = 1024;  // Requests without a seat; more are refused at once.
  std::size_t events_max = 256;    // Token events a client may leave unread.
  std::size_t holds_max = 64;      // Commands of operators that wait for the next tick.
  Micros step_budget{0};           // See policy::View.
  // Every sequence is computed in the shapes that it would have alone, so that its reply is
  // bit-identical, whatever happens around it and to it. The engine's layout is split, and it
  // computes one sequence at a time.
  bool deterministic = false;
  bool overcommit = true;  // false: only what fits in the worst case is admitted.
  policy::PreemptOptions preempt;
  std::optional<Bytes> preempt_ram = Bytes(std::int64_t{8} << 30);  // None: no limit.
  // For conversations that nobody computes. None: no limit; 0: they are lost with their cells.
  std::optional<Bytes> cache_ram = Bytes(0);
  Tokens cache_min{32};     // Shorter ones are not kept.
  bool copies_idle = true;  // Copied ahead, while they are still in the pool.
  kv::ArchiveOptions archive;
  Bytes bytes_per_token{0};     // What a swapped token takes, at most.
  Tokens block = block_tokens;  // What mirrors grow by.
  bool shows_texts = false;     // Replies are part of the status.
  // A sequence whose window is full goes on without some of its tokens, where the engine can.
  // REQUIRES: overcommit, not deterministic.
  bool context_shift = false;
  engine::Embedder* embedder = nullptr;  // Outlives the scheduler.
};

enum class SubmitOutcome : std::uint8_t {
  accepted,    // Exactly one final event will come.
  queue_full,  // Too many wait already. Nothing was taken.
  stopping,    // The server shuts down. Nothing was taken.
};

class Scheduler {
 public:
  // The engine, vocabulary and clock outlive the scheduler.
  Scheduler(engine::Engine& engine, const engine::Vocabulary& vocabulary, const Clock& clock,
            const SchedulerOptions& options);
  ~Scheduler();

  // --- Any thread ---

  std::shared_ptr<EventChannel> open_channel();
  // All of one client request, or none. They are moved from only when accepted, and
  // Submission::submitted is set here. REQUIRES: at least one; all have the same priority; those of
  // a group stand in a row, have the same prompt and no seat.
  [[nodiscard]] SubmitOutcome submit(std::vector<Submission>& submissions);
  // Parks a request until it is let back, or lets it back: at the next tick, if accepted. Then
  // exactly one receipt comes.
  [[nodiscard]] SubmitOutcome hold(HoldCommand command);
  // REQUIRES: options.embedder. The job is moved from only when accepted.
  [[nodiscard]] SubmitOutcome embed(EmbedJob& job);
  const StatusBoard& status() const { return board_; }
  const SchedulerStats& stats() const { return stats_; }
  // Who is held ends as `stopping`, since nobody will let it back; commands are refused.
  void stop_holding();
  // No more submissions; run() returns when every request is done.
  void stop_gracefully();
  // Every request ends as `stopping` at the next tick; run() returns then.
  void stop_now();
  // How long until a refused client may try again, from what was measured so far; 1 to 60.
  std::int64_t retry_after_seconds() const;

  // The store has something to take: it is called on the store's threads.
  void poke() { inbox_.poke(); }

  // --- The scheduler thread ---

  // One tick. False when there was nothing to do and nothing is left to do but wait for the inbox.
  bool tick();
  // Ticks until stopped, sleeping while there is nothing to do.
  void run();

 private:
  void drain_inbox();
  void enqueue(std::unique_ptr<Sequence> sequence);
  void drop_abandoned();
  void end_all(FinishReason reason, FailureKind failure);
  void take_commands();
  HoldOutcome carry_out(HoldCommand& command);
  Sequence* find_running(Seat seat) const;
  Sequence* find_held(Seat seat) const;
  Sequence* find(RequestId id) const;
  void write_receipts();
  void hand_out_receipts();
  void end_held();
  void refuse_commands();
  policy::View build_view();
  void view_waiting();
  void view_running(Micros now);
  bool awaits_prompt(const Sequence& sequence, bool is_first) const;
  kv::PrefixMatch match(const Request& request, Seat seat) const;
  void apply(const policy::Plan& plan);
  void admit(const policy::Admission& admission);
  Tokens take_seat(const policy::Admission& admission, const Request& request);
  void park(const policy::Plan& plan);
  void park(const policy::Park& park, kv::Image image, Micros took);
  void resume(const policy::Plan& plan);
  void view_parked();
  Tokens shared_with_first(const Sequence& parked) const;
  void mirror(const policy::Plan& plan);
  void copy_idle(const policy::Plan& plan);
  bool anything_to_copy() const;
  void take_arrivals();
  bool is_loading(Sequence& sequence);
  bool save_idle(kv::SaveAt at);
  bool save(Seat seat, kv::SaveAt at);
  void publish_cache();
  bool step(const policy::Plan& plan);
  void account_step(engine::StepOutcome outcome, const policy::Plan& plan, Micros took);
  void take_results(const policy::Plan& plan);
  bool shift(Sequence& sequence);
  void finish(Sequence& sequence, FinishReason reason, FailureKind failure);
  void handle_no_room();
  void handle_broken();
  void remove_finished();
  void publish_parked(Status& status);
  void show(const Sequence& sequence, Status& status) const;
  void publish();
  Tokens cells_needed(const Request& request) const;
  // Whether its next row is one that nothing else is computed with: of a reply, new or again.
  bool goes_row_by_row(const Sequence& sequence) const;

  engine::Engine& engine_;
  const engine::Vocabulary& vocabulary_;
  const Clock& clock_;
  const SchedulerOptions options_;
  const Tokens chunk_;  // See policy::View.
  const bool shifts_;   // Contexts, when they are full.
  BoundedQueue<std::vector<Submission>> inbox_;
  BoundedQueue<HoldCommand> commands_;
  std::atomic<std::int64_t> waiting_count_{0};
  Embeddings embeddings_;
  std::atomic<bool> stopping_{false}, stopping_now_{false}, stopping_holds_{false};
  StatusBoard board_;
  SchedulerStats stats_;

  kv::Pool pool_;
  kv::Archive archive_;
  policy::Pace pace_;
  policy::CopyPace copy_pace_;
  std::vector<std::unique_ptr<Sequence>> waiting_;  // By priority, then arrival.
  std::vector<std::unique_ptr<Sequence>> running_;  // By admission; null: finished in this tick.
  std::vector<std::unique_ptr<Sequence>> parked_;   // By time of parking; null as above.
  Bytes image_overhead_{0};                         // The most beyond bytes_per_token so far.
  std::vector<std::shared_ptr<const Request>> last_request_;  // By seat, for /slots.
  std::vector<bool> unsaved_;                                 // By seat: it is idle and not stored.
  std::vector<kv::Arrival> arrivals_;                         // Reused.
  std::int32_t no_room_in_a_row_ = 0;

  // Reused every tick, so that the step path does not allocate.
  std::vector<std::vector<Submission>> drained_;
  std::vector<HoldCommand> carried_out_;  // Answered once the tick that heeds them is published.
  std::vector<HoldReceipt> receipts_;     // By index into carried_out_.
  std::vector<policy::SeatView> seat_views_;
  std::vector<policy::WaitingView> waiting_views_;
  std::vector<policy::RunningView> running_views_;
  std::vector<policy::ParkedView> parked_views_;
  std::vector<policy::PrefixView> prefixes_;
  policy::Plan plan_;
  std::vector<kv::Image> images_;  // Of those who are parked together.
  std::vector<engine::RowGroup> groups_;
  std::vector<engine::GroupResult> results_;
};

}  // namespace fermata::scheduler
