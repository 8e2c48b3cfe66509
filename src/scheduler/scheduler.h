// The loop, and the only owner of sequences. One tick: drain the inbox, drop who went away, build
// the view, plan, check the plan, apply it, one engine step, events.
#pragma once

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "core/pages.h"
#include "core/slots.h"
#include "engine/relay.h"
#include "engine/vocabulary.h"
#include "kv/page_desk.h"
#include "kv/pool.h"
#include "kv/slot_desk.h"
#include "policy/pace.h"
#include "policy/policy.h"
#include "scheduler/changing.h"
#include "scheduler/embeddings.h"
#include "scheduler/hold.h"
#include "scheduler/options.h"
#include "scheduler/sequence.h"
#include "scheduler/sleeping.h"
#include "scheduler/spilling.h"
#include "scheduler/status.h"
#include "scheduler/views.h"

#include <atomic>
#include <memory>
#include <vector>

namespace fermata::scheduler {

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
  // Changes the geometry, while requests run; exactly one receipt comes, if accepted. queue_full:
  // another change is under way. One that is refused before is counted. REQUIRES: a workshop.
  [[nodiscard]] SubmitOutcome reconfigure(ChangeCommand command);
  void count_failed_change() { stats_.changes_failed.add(); }
  // Asks something of saved conversations: exactly one answer comes, if accepted.
  // REQUIRES: keeps_pages().
  [[nodiscard]] SubmitOutcome ask(PageCommand command);
  // The same for the conversation of a slot. REQUIRES: keeps_pages() or, for files, there are some.
  [[nodiscard]] SubmitOutcome ask(SlotCommand command);
  bool keeps_pages() const { return archive_.is_on(); }
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
  // Ticks until stopped, waiting while there is nothing to do.
  void run();

 private:
  void drain_inbox();
  void enqueue(std::unique_ptr<Sequence> sequence);
  void drop_abandoned();
  void end_all(FinishReason reason, FailureKind failure);
  void take_commands();
  HoldOutcome carry_out(HoldCommand& command);
  Sequence* find_running(Seat seat) const;
  Sequence* find_held(Seat seat, const Owner& owner) const;
  Sequence* find(RequestId id) const;
  bool change_geometry();
  bool begin_change();
  void change_in_place();
  bool has_outgrown();
  std::vector<reconfigure::Request> requests_under_way() const;
  reconfigure::Situation situation(const std::vector<reconfigure::Request>& requests,
                                   const reconfigure::Change& change) const;
  std::vector<reconfigure::Transfer::Item> choose_seats(const engine::EngineLimits& limits) const;
  void install(engine::Engine& next, std::vector<kv::Adopted> adopted);
  reconfigure::SequenceFate fate_of(Seat seat) const;
  reconfigure::Fates leave_seats(const std::vector<kv::Adopted>& staying, bool exact);
  void renumber(const std::vector<kv::Adopted>& adopted);
  void fit_to(const engine::Engine& next);
  void leave_for_change(const std::vector<kv::Adopted>& staying);
  bool rest();
  bool is_wanted() const;
  void sleep(Depth depth);
  bool come_back();
  void give_up_waiting();
  void end_change(reconfigure::Receipt::Outcome outcome, std::string failure = {});
  void refuse_change();
  bool is_moving() const { return change_.now && change_.now->stage == ChangeStage::moving; }
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
  SubmitOutcome push(Question question);
  bool take_questions();
  void refuse_questions();
  bool is_loading(Sequence& sequence);
  bool awaits_beginning(const Sequence& sequence);
  Tokens at_hand(const Request& request, const Sequence* except) const;
  bool save_idle(kv::SaveAt at);
  bool save(Seat seat, kv::SaveAt at);
  void evict(Seat seat);
  double price_of(Tokens tokens) const;
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
  Tokens window_of(const Sequence& sequence) const;
  kv::Reservation promise(Seat seat, const Request& request);

  engine::Relay engine_;
  Changes change_;
  const engine::Vocabulary& vocabulary_;
  const Clock& clock_;
  const SchedulerOptions options_;
  const Tokens chunk_;  // See policy::View.
  const bool shifts_;   // Contexts, when they are full.
  BoundedQueue<std::vector<Submission>> inbox_;
  BoundedQueue<HoldCommand> commands_;
  BoundedQueue<Question> questions_;
  std::atomic<std::int64_t> waiting_count_{0};
  SchedulerStats stats_;
  Sleep sleep_;
  Embeddings embeddings_;
  std::atomic<bool> stopping_{false}, stopping_now_{false}, stopping_holds_{false};
  StatusBoard board_;

  kv::Pool pool_;
  kv::Archive archive_;
  Spilling spilling_;
  kv::PageDesk page_desk_;
  kv::SlotDesk slot_desk_;
  policy::Pace pace_;
  policy::CopyPace copy_pace_;
  std::vector<std::unique_ptr<Sequence>> waiting_;  // By priority, then arrival.
  std::vector<std::unique_ptr<Sequence>> running_;  // By admission; null: finished in this tick.
  std::vector<std::unique_ptr<Sequence>> parked_;   // By time of parking; null as above.
  Bytes image_overhead_{0};                         // The most beyond bytes_per_token so far.
  std::vector<std::shared_ptr<const Request>> last_request_;  // By seat, for /slots.
  std::vector<bool> unsaved_;                                 // By seat: it is idle and not stored.
  std::int32_t no_room_in_a_row_ = 0;
  Bytes bytes_per_token_{0};  // See SchedulerOptions.

  // Reused every tick, so that the step path does not allocate.
  CarriedOut carried_out_;
  FromOutside from_outside_;
  Views views_;
  policy::Plan plan_;
  std::vector<kv::Image> images_;  // Of those who are parked together.
  Rows rows_;
};

}  // namespace fermata::scheduler
