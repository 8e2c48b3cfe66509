// Thousands of random schedules on the strict fake engine, each from one seed. What must hold,
// whatever arrives, leaves or dawdles: every request gets exactly one final event and the text of
// its solo run; cells are conserved; nothing waits for ever.
#include "base/random.h"
#include "support/scheduler_rig.h"

#include <map>

#include <gtest/gtest.h>

namespace fermata {
namespace {

using testing::Ask;
using testing::Client;
using testing::RigSpec;
using testing::SchedulerRig;
using testing::solo_run;

struct Odds {
  RigSpec spec;
  int requests = 0;
  int cancel_percent = 0;
  int slow_percent = 0;
  int hold_percent = 0;
  int shared_prefix_percent = 0;
  int ticks_max = 20'000;
};

void draw_preemption(Random& random, scheduler::SchedulerOptions& options) {
  options.overcommit = random.chance(75);
  options.preempt.victim = static_cast<policy::Victim>(random.between(0, 3));
  options.preempt.quantum = Tokens(random.between(1, 40));
  options.preempt.rotate_after = Micros(random.between(0, 20'000));
  options.preempt.every = Tokens(random.chance(40) ? random.between(1, 20) : 0);
  options.block = Tokens(random.between(2, 24));
  options.bytes_per_token = Bytes(24) + engine::state_bytes_per_cell;
  options.preempt_ram.reset();
  if (random.chance(70)) options.preempt_ram = Bytes(random.between(0, 8000));
}

struct Setting {
  const char* name;
  engine::MemoryKind kind;
  Layout layout;
  bool deterministic = false;
};

Odds draw_odds(Random& random, const Setting& setting) {
  const Layout layout = setting.layout;
  Odds odds;
  odds.spec.model.kind = setting.kind;
  odds.spec.model.seed = random();
  odds.spec.model.eos_every =
      random.chance(50) ? static_cast<std::int32_t>(random.between(5, 60)) : 0;
  odds.spec.model.cost = {Micros(random.between(1, 500)), Micros(random.between(1, 100)),
                          random.between(0, 100)};
  odds.spec.geometry.layout = layout;
  odds.spec.geometry.n_parallel = static_cast<std::int32_t>(random.between(1, 6));
  odds.spec.geometry.n_ctx = Tokens(random.between(4, 20) * 16 * (layout == Layout::split ? 6 : 1));
  odds.spec.engine.n_batch = Tokens(random.between(1, 80));
  odds.spec.engine.n_ubatch = Tokens(random.between(1, 40));
  odds.spec.scheduler.events_max = static_cast<std::size_t>(random.between(1, 12));
  odds.spec.scheduler.waiting_max = static_cast<std::size_t>(random.between(4, 40));
  draw_preemption(random, odds.spec.scheduler);
  odds.spec.model.faults.move_percent =
      random.chance(30) ? static_cast<int>(random.between(1, 60)) : 0;
  if (setting.deterministic) {
    testing::make_deterministic(odds.spec);
    odds.spec.geometry.n_ctx = Tokens(random.between(4, 20) * 16);
    odds.spec.scheduler.preempt.every =
        odds.spec.scheduler.preempt.every * 8;  // A reply is computed again one row a tick.
    odds.ticks_max = 400'000;
  }
  odds.requests = static_cast<int>(random.between(1, 24));
  odds.cancel_percent = static_cast<int>(random.between(0, 3));
  odds.slow_percent = static_cast<int>(random.between(0, 80));
  const bool may_hold = odds.spec.scheduler.overcommit && random.chance(50);
  odds.hold_percent = may_hold ? static_cast<int>(random.between(1, 10)) : 0;
  odds.shared_prefix_percent = static_cast<int>(random.between(0, 90));
  return odds;
}

std::string random_text(Random& random, std::int64_t length) {
  std::string out;
  for (std::int64_t i = 0; i < length; ++i) out += static_cast<char>(random.between('a', 'z'));
  return out;
}

class Schedule {
 public:
  Schedule(std::uint64_t seed, const Setting& setting)
      : random_(seed), odds_(draw_odds(random_, setting)), rig_(odds_.spec) {}

  void play() {
    // Bounded: every tick either works or something changes outside it.
    for (int tick = 0; tick < odds_.ticks_max && !everyone_is_done(); ++tick) {
      while (static_cast<int>(asks_.size()) < odds_.requests && random_.chance(30)) arrive();
      if (random_.chance(odds_.hold_percent)) park_or_unpark();
      if (tick == 10'000) let_all_go();
      rig_.tick();
      check_cells();
      for (std::size_t i = 0; i < clients_.size(); ++i) visit(i);
    }
    let_all_go();
    for (std::size_t i = 0; i < clients_.size(); ++i) check_client(i);
    rig_.tick();
    for (const auto& reply : replies_) EXPECT_TRUE(reply->take().has_value());
    const scheduler::Status status = rig_.scheduler().status().read();
    EXPECT_EQ(status.n_processing, 0);
    EXPECT_EQ(status.n_waiting, 0);
    EXPECT_TRUE(status.parked.empty());
    check_counts();
  }

 private:
  void arrive() {
    Ask ask;
    const std::int64_t window = rig_.engine().limits().window.value;
    if (random_.chance(odds_.shared_prefix_percent) && !asks_.empty()) {
      // A turn that goes on from an earlier one, or a sibling with the same beginning.
      const std::size_t of =
          static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(asks_.size()) - 1));
      ask.prompt = asks_[of].prompt;
      if (random_.chance(50)) ask.prompt += clients_[of]->text;
      if (random_.chance(30)) ask.prompt.resize(ask.prompt.size() / 2);
    }
    ask.prompt += random_text(random_, random_.between(1, window / 2));
    ask.max_tokens = random_.chance(15) ? -1 : random_.between(0, window / 2);
    ask.cache_prompt = random_.chance(90);
    ask.priority = static_cast<std::int32_t>(random_.between(0, 2));
    ask.temperature = random_.chance(50) ? 0.0F : 1.0F;
    ask.seed = static_cast<std::uint32_t>(random_() & 0xFFFF);
    if (random_.chance(20)) ask.stop = {random_text(random_, 1), random_text(random_, 2)};
    if (random_.chance(10)) {
      ask.seat =
          Seat(static_cast<std::int32_t>(random_.between(0, odds_.spec.geometry.n_parallel)));
    }
    auto client = rig_.submit(ask);
    if (client->outcome == scheduler::SubmitOutcome::queue_full) return;
    asks_.push_back(std::move(ask));
    clients_.push_back(std::move(client));
    left_.push_back(false);
  }

  // An operator parks somebody, or lets somebody back: any request, whatever its state.
  void park_or_unpark() {
    if (clients_.empty()) return;
    const auto action =
        random_.chance(40) ? scheduler::HoldAction::park : scheduler::HoldAction::unpark;
    const auto last = static_cast<std::int64_t>(clients_.size()) - 1;
    replies_.push_back(
        rig_.hold(action, clients_[static_cast<std::size_t>(random_.between(0, last))]->id));
  }

  // From then on nobody is held, and everybody finishes.
  void let_all_go() {
    odds_.hold_percent = 0;
    for (const auto& client : clients_) {
      replies_.push_back(rig_.hold(scheduler::HoldAction::unpark, client->id));
    }
  }

  void visit(std::size_t i) {
    if (left_[i]) return;
    if (random_.chance(odds_.cancel_percent) && clients_[i]->n_final == 0) {
      clients_[i]->channel->abandon();
      left_[i] = true;
    } else if (!random_.chance(odds_.slow_percent)) {
      clients_[i]->read();
    }
  }

  bool everyone_is_done() const {
    if (static_cast<int>(asks_.size()) < odds_.requests) return false;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      if (!left_[i] && clients_[i]->n_final == 0) return false;
    }
    return true;
  }

  void check_counts() {
    const scheduler::SchedulerStats& stats = rig_.scheduler().stats();
    EXPECT_EQ(stats.parked.value(), 0);
    EXPECT_EQ(stats.parked_bytes.value(), 0);
    EXPECT_EQ(stats.mirrored_bytes.value(), 0);
    std::uint64_t parks = 0;
    for (const auto& client : clients_) {
      if (!client->final) continue;
      const Parking& parking = client->final->parking;
      parks += static_cast<std::uint64_t>(parking.parks());
      if (parking.parks() == 0) {
        EXPECT_EQ(parking.time, Micros(0));
        EXPECT_EQ(parking.recomputed, Tokens(0));
      }
    }
    EXPECT_EQ(parks, stats.parks_swap.value() + stats.parks_recompute.value());
    EXPECT_LE(stats.resumes.value(), parks);
    std::uint64_t by_reason = 0;
    for (std::size_t i = 0; i < policy::park_reasons; ++i) {
      by_reason += stats.swaps_by_reason[i].value() + stats.recomputes_by_reason[i].value();
    }
    EXPECT_EQ(parks, by_reason);
  }

  void check_cells() {
    const std::int64_t parked = rig_.scheduler().stats().parked_bytes.value();
    const std::int64_t mirrored = rig_.scheduler().stats().mirrored_bytes.value();
    if (odds_.spec.scheduler.preempt_ram) {
      ASSERT_LE(parked + mirrored, odds_.spec.scheduler.preempt_ram->value);
    }
    if (!rig_.engine().capabilities().cells_per_token) return;
    ASSERT_EQ(rig_.scheduler().status().read().cells_used, rig_.engine().cells_used());
    ASSERT_EQ(rig_.scheduler().stats().no_room_steps.value(), 0U);
  }

  void check_client(std::size_t i) {
    Client& client = *clients_[i];
    client.read();
    if (left_[i] && client.n_final == 0) {
      // It left; the scheduler still owes the channel its final event.
      for (int tick = 0; tick < 3; ++tick) rig_.tick();
      client.read();
    }
    ASSERT_EQ(client.n_final, 1) << "request " << i;
    const FinalEvent& final = *client.final;
    const std::int64_t window = rig_.engine().limits().window.value;
    if (static_cast<std::int64_t>(asks_[i].prompt.size()) >= window) {
      EXPECT_EQ(final.failure, FailureKind::larger_than_window);
      return;
    }
    if (asks_[i].seat && asks_[i].seat->value >= odds_.spec.geometry.n_parallel) {
      EXPECT_EQ(final.failure, FailureKind::no_such_seat);
      return;
    }
    const bool deterministic = odds_.spec.scheduler.deterministic;
    const Tokens chunk = deterministic ? rig_.engine().limits().ubatch : Tokens(0);
    const Client solo = solo_run(odds_.spec.model, asks_[i], Tokens(window), chunk);
    if (final.reason == FinishReason::cancelled) {
      ASSERT_TRUE(left_[i]);
      EXPECT_TRUE(solo.text.starts_with(client.text));
      return;
    }
    EXPECT_EQ(client.text, solo.text) << "request " << i;
    EXPECT_EQ(final.reason, solo.final->reason);
    EXPECT_EQ(final.stop_word, solo.final->stop_word);
    EXPECT_EQ(final.timings.predicted, solo.final->timings.predicted);
    EXPECT_EQ(final.timings.prompt_cached + final.timings.prompt_computed,
              Tokens(static_cast<std::int64_t>(asks_[i].prompt.size())));
  }

  Random random_;
  Odds odds_;
  SchedulerRig rig_;
  std::vector<Ask> asks_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<bool> left_;
  std::vector<std::shared_ptr<scheduler::HoldReply>> replies_;
};

class RandomSchedules : public ::testing::TestWithParam<Setting> {};

TEST_P(RandomSchedules, EveryRequestGetsItsSoloTextOnce) {
  constexpr std::uint64_t seeds = 400;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Schedule(seed, GetParam()).play();
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Memories, RandomSchedules,
    ::testing::Values(
        Setting{"attention_pooled", engine::MemoryKind::attention, Layout::pooled},
        Setting{"attention_split", engine::MemoryKind::attention, Layout::split},
        Setting{"window_pooled", engine::MemoryKind::sliding_window, Layout::pooled},
        Setting{"window_split", engine::MemoryKind::sliding_window, Layout::split},
        Setting{"recurrent", engine::MemoryKind::recurrent, Layout::pooled},
        Setting{"hybrid", engine::MemoryKind::hybrid, Layout::pooled},
        Setting{"attention_deterministic", engine::MemoryKind::attention, Layout::split, true},
        Setting{"window_deterministic", engine::MemoryKind::sliding_window, Layout::split, true},
        Setting{"recurrent_deterministic", engine::MemoryKind::recurrent, Layout::split, true},
        Setting{"hybrid_deterministic", engine::MemoryKind::hybrid, Layout::split, true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fermata
