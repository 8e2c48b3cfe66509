#include "sim/schedule.h"

#include "sim/wait_watch.h"

#include <algorithm>
#include <limits>
#include <memory>

#include <spdlog/fmt/fmt.h>

namespace fermata::sim {
namespace {

constexpr std::size_t faults_max = 8;  // Of one schedule; more say nothing new.
constexpr int settle_ticks_max = 10'000;

std::string random_text(Random& random, std::int64_t length) {
  std::string out;
  for (std::int64_t i = 0; i < length; ++i) out += static_cast<char>(random.between('a', 'z'));
  return out;
}

class Schedule {
 public:
  Schedule(std::uint64_t seed, const ScheduleOptions& options)
      : plant_(options.plant),
        random_(seed),
        odds_(draw_odds(random_, options.memory)),
        rig_(odds_.spec),
        watch_(wait_bound(odds_.spec, rig_.engine().limits())) {
    rig_.workshop().set_faults(odds_.build_fault_percent);
  }

  Outcome play() {
    FERMATA_CHECK(plant_ != Plant::failed_check, "planted");
    while (!everyone_is_done()) {
      if (ticks_ == odds_.faulty_ticks) rig_.calm();
      if (static_cast<int>(visitors_.size()) < odds_.requests && random_.chance(arrivals())) {
        arrive();
      }
      tick();
      for (Visitor& visitor : visitors_) visit(visitor);
      if (!faults_.empty() || !watch_.faults().empty()) break;
    }
    // What went wrong half-way is the news; the rest would only follow from it.
    if (everyone_is_done()) check_replies();
    return outcome();
  }

 private:
  struct Visitor {
    Ask ask;
    std::unique_ptr<Client> client;
    GroupId group;         // Of choices; they leave together.
    bool stalled = false;  // Does not read while there are faults.
    bool left = false;
    bool may_break = false;  // It ran, or was about to, in a step that broke.
    // In force when it came.
    Tokens window{0};
    std::int32_t seats = 0;
  };

  struct AskedChange {
    std::shared_ptr<scheduler::ChangeReply> reply;
    std::optional<reconfigure::Receipt> receipt;
  };

  void fault(std::string what) {
    if (faults_.size() < faults_max) faults_.push_back(std::move(what));
  }
  void expect(bool held, const Visitor& of, const char* what) {
    if (!held) fault(fmt::format("request {}: {}", of.client->id.value, what));
  }
  bool calm() const { return ticks_ >= odds_.faulty_ticks; }
  int arrivals() const { return calm() ? 100 : odds_.arrival_percent; }

  void arrive() {
    Ask ask;
    const std::int64_t window = rig_.limits().window.value;
    if (random_.chance(odds_.shared_prefix_percent) && !visitors_.empty()) {
      // A turn that goes on from an earlier one, or a sibling with the same beginning.
      const Visitor& of = visitors_[static_cast<std::size_t>(
          random_.between(0, static_cast<std::int64_t>(visitors_.size()) - 1))];
      ask.prompt = of.ask.prompt;
      if (random_.chance(50)) ask.prompt += of.client->text;
      if (random_.chance(30)) ask.prompt.resize(ask.prompt.size() / 2);
    }
    ask.prompt += random_text(random_, random_.between(1, window / 2));
    ask.max_tokens = random_.chance(15) ? -1 : random_.between(0, window / 2);
    if (odds_.spec.scheduler.context_shift) {
      ask.max_tokens = random_.between(0, 2 * window);
      ask.n_keep = random_.between(-1, window / 2);
      ask.n_discard = random_.chance(50) ? 0 : random_.between(1, window);
    }
    ask.cache_prompt = random_.chance(90);
    ask.priority = static_cast<std::int32_t>(random_.between(0, 2));
    ask.temperature = random_.chance(50) ? 0.0F : 1.0F;
    ask.seed = static_cast<std::uint32_t>(random_() & 0xFFFF);
    if (random_.chance(20)) {
      ask.stop.push_back(random_text(random_, 1));
      ask.stop.push_back(random_text(random_, 2));
    }
    if (random_.chance(10)) {
      ask.seat =
          Seat(static_cast<std::int32_t>(random_.between(0, odds_.spec.geometry.n_parallel)));
    }
    enter(ask, random_.chance(odds_.stalled_percent));
  }

  // As one request, or as the choices of one, as many as there are seats for; then perhaps with a
  // second prompt that has as many.
  void enter(const Ask& ask, bool stalled) {
    const auto room =
        static_cast<std::int64_t>(odds_.requests) - static_cast<std::int64_t>(visitors_.size());
    const std::int64_t most = std::min<std::int64_t>(rig_.limits().seats, room);
    const bool several = !ask.seat && most > 1 && random_.chance(odds_.group_percent);
    const std::int64_t choices = several ? random_.between(2, most) : 1;
    std::vector<Ask> asks{ask};
    if (several && 2 * choices <= room && random_.chance(30)) {
      asks.push_back(ask);
      asks.back().prompt += random_text(random_, 3);
    }
    auto clients = rig_.submit(asks, static_cast<std::size_t>(choices));
    if (clients.front()->outcome == scheduler::SubmitOutcome::queue_full) return;
    std::uint64_t group = 0;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      Ask& of = asks[i / static_cast<std::size_t>(choices)];
      const bool is_first = i % static_cast<std::size_t>(choices) == 0;
      if (several && is_first) group = clients[i]->id.value;
      visitors_.push_back({.ask = of,
                           .client = std::move(clients[i]),
                           .group = GroupId(group),
                           .stalled = stalled,
                           .window = rig_.limits().window,
                           .seats = rig_.limits().seats});
      ++of.seed;
    }
  }

  void visit(Visitor& visitor) {
    if (visitor.left) return;
    if (!calm() && random_.chance(odds_.cancel_percent) && visitor.client->n_final == 0) {
      leave(visitor);
    } else if (calm() || !(visitor.stalled || random_.chance(odds_.slow_percent))) {
      visitor.client->read();
    }
  }

  static bool in_group(const Visitor& a, const Visitor& b) {
    return a.group != GroupId() && a.group == b.group;
  }

  void leave(Visitor& visitor) {
    for (Visitor& other : visitors_) {
      const bool goes = &other == &visitor || in_group(other, visitor);
      if (!goes || other.left || other.client->n_final > 0) continue;
      other.client->channel->abandon();
      other.left = true;
    }
  }

  // Of prompts where shapes are fixed; else 0.
  Tokens chunk() const { return odds_.memory.deterministic ? rig_.limits().ubatch : Tokens(0); }

  bool everyone_is_done() const {
    return static_cast<int>(visitors_.size()) == odds_.requests &&
           std::all_of(visitors_.begin(), visitors_.end(), [](const Visitor& visitor) {
             return visitor.left || visitor.client->n_final > 0;
           });
  }

  Visitor& visitor_of(RequestId id) {
    const auto found =
        std::find_if(visitors_.begin(), visitors_.end(),
                     [&](const Visitor& visitor) { return visitor.client->id == id; });
    FERMATA_CHECK(found != visitors_.end(), "a request that nobody made");
    return *found;
  }

  // An operator parks somebody, or lets somebody back: any request, whatever its state.
  void command(scheduler::HoldAction action, RequestId id) {
    replies_.push_back(rig_.hold(action, id));
    for (const Visitor& visitor : visitors_) {
      if (visitor.client->id == id || in_group(visitor, visitor_of(id))) {
        commanded_.push_back(visitor.client->id);
      }
    }
  }

  void operate() {
    commanded_.clear();
    if (!calm() && random_.chance(odds_.change_percent)) change_geometry();
    if (ticks_ == odds_.faulty_ticks) {
      // From now on nobody is held, and everybody finishes.
      for (const Visitor& visitor : visitors_) {
        command(scheduler::HoldAction::unpark, visitor.client->id);
      }
    } else if (!calm() && !visitors_.empty() && random_.chance(odds_.hold_percent)) {
      const bool parks = random_.chance(40);
      const auto last = static_cast<std::int64_t>(visitors_.size()) - 1;
      const auto of = static_cast<std::size_t>(random_.between(0, last));
      command(parks ? scheduler::HoldAction::park : scheduler::HoldAction::unpark,
              visitors_[of].client->id);
    }
  }

  void change_geometry() {
    const Geometry& first = odds_.spec.geometry;
    reconfigure::Change change;
    if (random_.chance(70)) {
      change.n_ctx = Tokens(random_.between(first.n_ctx.value / 2, first.n_ctx.value * 2));
    }
    if (random_.chance(60)) change.n_parallel = static_cast<std::int32_t>(random_.between(1, 6));
    if (random_.chance(10)) change.cache_type_k = random_.chance(50) ? KvType::f16 : KvType::f32;
    change.force = random_.chance(50);
    change.dry_run = random_.chance(5);
    if (auto reply = rig_.change(change)) changes_.push_back({std::move(reply), {}});
  }

  // A change may still wait for a context that is being built when the last request is done.
  bool has_receipts() {
    return std::ranges::all_of(changes_, [](AskedChange& asked) {
      if (!asked.receipt) asked.receipt = asked.reply->take();
      return asked.receipt.has_value();
    });
  }

  bool is_settled() const {
    const scheduler::Status status = rig_.status();
    return !status.is_changing && !status.is_absent;
  }

  std::vector<WaitWatch::Parked> view_parked(const scheduler::Status& status) {
    std::vector<WaitWatch::Parked> out;
    for (const scheduler::ParkedStatus& entry : status.parked) {
      if (entry.is_queued) continue;
      const RequestId id = entry.request->id;
      const Visitor& visitor = visitor_of(id);
      const bool commanded =
          std::find(commanded_.begin(), commanded_.end(), id) != commanded_.end();
      const WaitWatch::Parked parked{id, entry.request->priority,
                                     visitor.client->channel->has_room() && !visitor.left,
                                     entry.request->seat.has_value() || entry.is_held || commanded};
      add_to_line(out, parked, entry.request->group);
    }
    return out;
  }

  // A group stands where the first of it does; it can come when all of it can.
  void add_to_line(std::vector<WaitWatch::Parked>& line, const WaitWatch::Parked& parked,
                   GroupId group) {
    const auto is_sibling = [&](const WaitWatch::Parked& other) {
      return group != GroupId() && visitor_of(other.id).group == group;
    };
    const auto last = std::find_if(line.rbegin(), line.rend(), is_sibling);
    const auto added = line.insert(last == line.rend() ? line.end() : last.base(), parked);
    bool reads = added->reads, bound = added->bound;
    for (const WaitWatch::Parked& other : line) {
      if (!is_sibling(other)) continue;
      reads = reads && other.reads;
      bound = bound || other.bound;
    }
    for (WaitWatch::Parked& other : line) {
      if (!is_sibling(other)) continue;
      other.reads = reads;
      other.bound = bound;
    }
  }

  // Who has been parked all the time: a step without room can park again who has just come back.
  static std::vector<RequestId> still_parked(const scheduler::Status& before,
                                             const scheduler::Status& after) {
    std::vector<RequestId> out;
    for (const scheduler::ParkedStatus& now : after.parked) {
      const auto is_same = [&](const scheduler::ParkedStatus& then) {
        return then.request == now.request &&
               then.swaps + then.recomputes == now.swaps + now.recomputes;
      };
      const bool stayed = std::any_of(before.parked.begin(), before.parked.end(), is_same);
      if (!now.is_queued && stayed) out.push_back(now.request->id);
    }
    return out;
  }

  // Of all who are not done and not parked.
  std::int32_t others_priority(const std::vector<WaitWatch::Parked>& parked) const {
    std::int32_t out = std::numeric_limits<std::int32_t>::min();
    for (const Visitor& visitor : visitors_) {
      const auto is_it = [&](const WaitWatch::Parked& p) { return p.id == visitor.client->id; };
      if (visitor.left || visitor.client->n_final > 0) continue;
      if (std::any_of(parked.begin(), parked.end(), is_it)) continue;
      out = std::max(out, visitor.ask.priority);
    }
    return out;
  }

  void tick() {
    operate();
    const scheduler::Status before = rig_.status();
    const std::vector<WaitWatch::Parked> parked = view_parked(before);
    const std::int32_t others = others_priority(parked);
    const Micros began = rig_.clock().now();
    const scheduler::SchedulerStats& stats = rig_.scheduler().stats();
    const std::uint64_t broken = stats.broken_steps.value(), resumes = stats.resumes.value();
    const std::uint64_t changes = changes_so_far();
    const bool was_settled = is_settled();
    if (!rig_.tick()) rig_.clock().advance(idle_tick);
    ++ticks_;
    const scheduler::Status after = rig_.status();
    const std::vector<RequestId> still = still_parked(before, after);
    const bool stays = was_settled && is_settled() && changes == changes_so_far();
    if (stays) {
      watch_.tick(parked, others, still, rig_.clock().now() - began);
    } else {
      watch_.restart(wait_bound(odds_.spec, rig_.limits()));
    }
    if (stats.broken_steps.value() != broken) {
      note_broken(parked, still, stats.resumes.value() - resumes);
    }
    if (!is_settled()) {
      advanced_at_ = ticks_;
      return;
    }
    check_cells(after);
    check_progress();
  }

  std::uint64_t changes_so_far() {
    const scheduler::SchedulerStats& stats = rig_.scheduler().stats();
    return stats.changes.value() + stats.changes_failed.value();
  }

  // Without faults somebody gets a row further that was never computed, or ends. Replays may come
  // first: one row a tick at least, of everybody who has a seat.
  void check_progress() {
    const scheduler::SchedulerStats& stats = rig_.scheduler().stats();
    const std::uint64_t done = stats.predicted_tokens.value() + stats.prompt_tokens.value() +
                               stats.requests_finished.value();
    if (done != done_ || !calm()) advanced_at_ = ticks_;
    done_ = done;
    const std::int64_t replays = rig_.limits().window.value * rig_.limits().seats;
    if (ticks_ - advanced_at_ > 2 * replays) {
      fault("faults have stopped, and nothing advances though somebody is not done");
    }
  }

  // Everybody who ran may end with that failure, and nobody who was out of the pool.
  void note_broken(const std::vector<WaitWatch::Parked>& before,
                   const std::vector<RequestId>& after, std::uint64_t resumed) {
    std::uint64_t gone = 0;
    for (const WaitWatch::Parked& parked : before) {
      const bool stayed = std::find(after.begin(), after.end(), parked.id) != after.end();
      gone += !stayed && !visitor_of(parked.id).left;
    }
    if (gone > resumed) fault("a broken step ended parked requests");
    for (Visitor& visitor : visitors_) {
      const RequestId id = visitor.client->id;
      if (std::find(after.begin(), after.end(), id) == after.end()) visitor.may_break = true;
    }
  }

  void check_cells(const scheduler::Status& status) {
    const std::int64_t parked = rig_.scheduler().stats().parked_bytes.value();
    const auto& budget = odds_.spec.scheduler.preempt_ram;
    const std::int64_t mirrored = rig_.scheduler().stats().mirrored_bytes.value();
    if (budget && parked + mirrored > budget->value) fault("parked bytes above the budget");
    const auto& cache = odds_.spec.scheduler.cache_ram;
    if (cache && rig_.scheduler().stats().cached_bytes.value() > cache->value) {
      fault("cached bytes above the budget");
    }
    if (!rig_.engine().capabilities().cells_per_token) return;
    const Tokens leaked(plant_ == Plant::leaked_cell ? 1 : 0);
    if (status.cells_used != rig_.engine().cells_used() + leaked) {
      fault(fmt::format("tick {}: the scheduler counts {} cells, the engine {}", ticks_,
                        status.cells_used.value, (rig_.engine().cells_used() + leaked).value));
    }
    if (odds_.spec.model.faults.no_room_percent == 0 &&
        rig_.scheduler().stats().no_room_steps.value() > 0) {
      fault("the engine had no room though the ledger said so");
    }
  }

  void check_replies() {
    // The scheduler owes final events to who has left, and receipts.
    for (int i = 0; i < 3 || (i < settle_ticks_max && !has_receipts()); ++i) rig_.tick();
    spoil(*visitors_.front().client);
    for (Visitor& visitor : visitors_) check(visitor);
    check_end();
  }

  void spoil(Client& client) const {
    client.read();
    if (plant_ == Plant::wrong_text) client.text += '\x01';
    if (plant_ == Plant::lost_final) client.n_final = 0;
  }

  void check(Visitor& visitor) {
    Client& client = *visitor.client;
    client.read();
    if (client.n_final != 1) {
      fault(fmt::format("request {}: {} final events", client.id.value, client.n_final));
      return;
    }
    const FinalEvent& final = *client.final;
    figures_.cancelled += final.reason == FinishReason::cancelled;
    figures_.failed += final.reason == FinishReason::failed;
    const Tokens prompt(static_cast<std::int64_t>(visitor.ask.prompt.size()));
    FailureKind refused = FailureKind::none;
    if (prompt >= visitor.window) {
      refused = FailureKind::larger_than_window;
    } else if (visitor.ask.seat && visitor.ask.seat->value >= visitor.seats) {
      refused = FailureKind::no_such_seat;
    }
    if (refused != FailureKind::none) {
      expect(final.failure == refused, visitor, "is impossible and was not refused");
      expect(client.text.empty(), visitor, "was refused with a text");
      return;
    }
    // A full window ends it: then it is as long as the window that was in force.
    const Tokens window = final.truncated ? final.window : std::max(visitor.window, final.window);
    check_reply(visitor, solo_run(odds_.spec.model, visitor.ask, window, chunk(),
                                  odds_.spec.scheduler.context_shift));
  }

  void check_reply(const Visitor& visitor, const Client& solo) {
    const Client& client = *visitor.client;
    const FinalEvent& final = *client.final;
    const bool cancelled = final.reason == FinishReason::cancelled;
    const bool broken = final.failure == FailureKind::engine_broken;
    if (cancelled || broken) {
      expect(!cancelled || visitor.left, visitor, "was cancelled and its client had not left");
      expect(!broken || visitor.may_break, visitor, "ended broken and was not running");
      // It ended with what was held back: perhaps the first letters of the stop word to come.
      const std::string whole = solo.text + solo.final->stop_word;
      expect(whole.starts_with(client.text), visitor, "text differs from its solo run");
      return;
    }
    expect(client.text == solo.text, visitor, "text differs from its solo run");
    expect(final.reason == solo.final->reason, visitor, "ended for another reason than alone");
    expect(final.stop_word == solo.final->stop_word, visitor, "another stop word than alone");
    const Timings& timings = final.timings;
    expect(timings.predicted == solo.final->timings.predicted, visitor,
           "another number of tokens than alone");
    const Tokens prompt(static_cast<std::int64_t>(visitor.ask.prompt.size()));
    expect(timings.prompt_cached + timings.prompt_computed == prompt, visitor,
           "the prompt is billed wrongly");
  }

  void check_end() {
    const scheduler::Status status = rig_.status();
    const bool empty = status.n_processing == 0 && status.n_waiting == 0 && status.parked.empty();
    if (!empty) fault("the scheduler is not empty at the end");
    const scheduler::SchedulerStats& stats = rig_.scheduler().stats();
    if (stats.parked.value() != 0 || stats.parked_bytes.value() != 0 ||
        stats.mirrored_bytes.value() != 0) {
      fault("parked requests or bytes are left at the end");
    }
    for (const auto& reply : replies_) {
      if (!reply->take()) fault("an operator got no receipt");
    }
    for (const auto& [reply, receipt] : changes_) {
      if (!receipt) fault("a change of the geometry got no receipt");
      const bool is_done = receipt && receipt->outcome == reconfigure::Receipt::Outcome::done;
      figures_.changes += is_done;
    }
    std::uint64_t parks = 0;
    for (const Visitor& visitor : visitors_) {
      if (!visitor.client->final) continue;
      const Parking& parking = visitor.client->final->parking;
      parks += static_cast<std::uint64_t>(parking.parks());
      const bool billed = parking.time != Micros(0) || parking.recomputed != Tokens(0);
      const bool is_shifted =
          odds_.spec.scheduler.context_shift && visitor.client->final->truncated;
      expect(parking.parks() > 0 || is_shifted || !billed, visitor,
             "is billed for parks it never had");
    }
    if (parks != stats.parks_swap.value() + stats.parks_recompute.value()) {
      fault("the replies tell of other parks than the counters");
    }
    if (stats.resumes.value() > parks) fault("more resumes than parks");
    std::uint64_t by_reason = 0;
    for (std::size_t i = 0; i < policy::park_reasons; ++i) {
      by_reason += stats.swaps_by_reason[i].value() + stats.recomputes_by_reason[i].value();
    }
    if (by_reason != parks) fault("the reasons of parks do not sum");
  }

  Outcome outcome() {
    for (const std::string& what : watch_.faults()) fault(what);
    const scheduler::SchedulerStats& stats = rig_.scheduler().stats();
    const auto count = [](const Counter& counter) {
      return static_cast<std::int64_t>(counter.value());
    };
    figures_.requests = static_cast<std::int64_t>(visitors_.size());
    figures_.ticks = ticks_;
    figures_.parks = count(stats.parks_swap) + count(stats.parks_recompute);
    figures_.resumes = count(stats.resumes);
    figures_.recomputed = count(stats.recomputed_tokens);
    figures_.no_room = count(stats.no_room_steps);
    figures_.broken = count(stats.broken_steps);
    figures_.sleeps = count(stats.sleeps);
    figures_.spilled = count(stats.spilled);
    figures_.unspilled = count(stats.unspilled);
    figures_.spills_lost = count(stats.spills_lost);
    figures_.fetched = stats.cache_hits.value();
    figures_.wait_of_bound = watch_.wait_of_bound();
    return {std::move(faults_), figures_};
  }

  const Plant plant_;
  Random random_;
  Odds odds_;
  Rig rig_;
  WaitWatch watch_;
  std::vector<Visitor> visitors_;
  std::vector<std::shared_ptr<scheduler::HoldReply>> replies_;
  std::vector<RequestId> commanded_;  // In this tick.
  std::vector<AskedChange> changes_;
  std::vector<std::string> faults_;
  Figures figures_;
  std::int64_t ticks_ = 0;
  std::uint64_t done_ = 0;        // Rows, tokens and requests; see check_progress().
  std::int64_t advanced_at_ = 0;  // The tick in which that last grew.
};

}  // namespace

void Figures::add(const Figures& other) {
  requests += other.requests;
  cancelled += other.cancelled;
  failed += other.failed;
  ticks += other.ticks;
  parks += other.parks;
  resumes += other.resumes;
  recomputed += other.recomputed;
  no_room += other.no_room;
  broken += other.broken;
  spilled += other.spilled;
  unspilled += other.unspilled;
  spills_lost += other.spills_lost;
  changes += other.changes;
  sleeps += other.sleeps;
  fetched += other.fetched;
  wait_of_bound = std::max(wait_of_bound, other.wait_of_bound);
}

Outcome play(std::uint64_t seed, const ScheduleOptions& options) {
  return Schedule(seed, options).play();
}

std::string describe_seed(std::uint64_t seed, const ScheduleOptions& options) {
  Random random(seed);
  return describe(draw_odds(random, options.memory));
}

}  // namespace fermata::sim
