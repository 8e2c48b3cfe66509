// Random changes of the geometry under random load, each schedule from one seed. What must hold:
// every request gets exactly one final event and the text of its solo run; cells are conserved; a
// change ends with exactly one receipt, and one that fails leaves all as it was.
#include "base/log.h"
#include "sim/rig.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fermata {
namespace {

using engine::MemoryKind;
using reconfigure::Receipt;

constexpr Tokens n_ctx_least{160};

std::string random_prompt(Random& random) {
  std::string out(static_cast<std::size_t>(random.between(4, 70)), 'a');
  for (char& letter : out) letter = static_cast<char>('a' + random.between(0, 2));
  return out;
}

sim::RigSpec draw_spec(Random& random, MemoryKind kind, std::uint64_t seed) {
  sim::RigSpec spec;
  spec.model.kind = kind;
  spec.model.seed = seed;
  spec.model.sliding_window = Tokens(24);
  spec.geometry.n_ctx = Tokens(random.between(n_ctx_least.value, 400));
  spec.geometry.n_parallel = static_cast<std::int32_t>(random.between(1, 5));
  spec.scheduler.block = Tokens(random.between(4, 16));
  spec.scheduler.bytes_per_token = Bytes(24) + engine::state_bytes_per_cell;
  if (random.chance(30)) spec.scheduler.preempt_ram = Bytes(random.between(0, 4000));
  spec.scheduler.cache_ram = Bytes(random.chance(30) ? 0 : random.between(1000, 100'000));
  if (random.chance(50)) spec.scheduler.change_path = reconfigure::Path::in_place;
  if (random.chance(20)) spec.scheduler.preempt.every = Tokens(random.between(1, 10));
  if (random.chance(30)) spec.model.faults.move_percent = static_cast<int>(random.between(1, 40));
  spec.workshop_seed = seed;
  return spec;
}

reconfigure::Change draw_change(Random& random) {
  reconfigure::Change out;
  if (random.chance(70)) out.n_ctx = Tokens(random.between(n_ctx_least.value, 600));
  if (random.chance(70)) out.n_parallel = static_cast<std::int32_t>(random.between(1, 6));
  if (random.chance(10)) out.n_ctx = Tokens(random.between(2, 40));
  if (random.chance(15)) {
    out.cache_type_k = random.chance(50) ? KvType::f16 : KvType::f32;
    out.force = random.chance(70);
  }
  out.dry_run = random.chance(10);
  return out;
}

class History {
 public:
  History(std::uint64_t seed, MemoryKind kind)
      : random_(seed), spec_(draw_spec(random_, kind, seed)), rig_(spec_) {
    rig_.workshop().set_faults(random_.chance(40) ? 30 : 0);
  }

  void play() {
    for (int round = 0; round < 40; ++round) {
      if (random_.chance(40)) submit();
      if (random_.chance(35)) change();
      for (std::int64_t i = random_.between(1, 12); i > 0; --i) tick();
    }
    rig_.workshop().set_faults(0);
    for (int i = 0; i < 20'000 && !is_done(); ++i) tick();
    ASSERT_TRUE(is_done()) << "somebody waits for ever";
    check_texts();
  }

  int changes() const { return changes_; }
  int rolled_back() const { return rolled_back_; }

 private:
  void submit() {
    sim::Ask ask;
    ask.prompt = random_prompt(random_);
    ask.max_tokens = random_.between(1, 60);
    ask.priority = static_cast<std::int32_t>(random_.between(0, 1));
    const auto choices = random_.chance(20) ? random_.between(2, 3) : 1;
    auto clients = rig_.submit(ask, static_cast<std::size_t>(choices));
    const Tokens window = rig_.scheduler().status().limits().window;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      windows_.push_back(window);
      sim::Ask own = ask;
      own.seed += static_cast<std::uint32_t>(i);
      asks_.push_back(own);
      clients_.push_back(std::move(clients[i]));
    }
  }

  void change() {
    auto reply = rig_.change(draw_change(random_));
    if (reply) replies_.push_back(std::move(reply));
  }

  void tick() {
    rig_.tick();
    rig_.clock().advance(Micros(random_.between(1, 200'000)));
    for (const auto& client : clients_) client->read();
    std::erase_if(replies_, [this](const auto& reply) {
      const auto receipt = reply->take();
      if (!receipt) return false;
      check(*receipt);
      return true;
    });
    const scheduler::Status status = rig_.scheduler().status().read();
    if (status.is_changing || status.is_absent) return;
    ASSERT_EQ(rig_.workshop().engines(), 1U) << "an engine was left behind";
    ASSERT_EQ(status.limits.cells, rig_.limits().cells);
    if (rig_.engine().capabilities().cells_per_token) {
      ASSERT_EQ(status.cells_used, rig_.engine().cells_used());
    }
  }

  void check(const Receipt& receipt) {
    ASSERT_NE(receipt.outcome, Receipt::Outcome::stopping);
    if (receipt.outcome == Receipt::Outcome::rolled_back) {
      ++rolled_back_;
      EXPECT_TRUE(receipt.before == receipt.after);
    }
    if (receipt.outcome != Receipt::Outcome::done || receipt.dry_run) return;
    ++changes_;
    const scheduler::Status status = rig_.scheduler().status().read();
    EXPECT_EQ(status.version, receipt.version);
    EXPECT_EQ(status.geometry.n_parallel, receipt.after.n_parallel);
  }

  bool is_done() const {
    return replies_.empty() && std::ranges::all_of(clients_, [](const auto& client) {
             return client->final.has_value();
           });
  }

  void check_texts() {
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const sim::Client& client = *clients_[i];
      EXPECT_EQ(client.n_final, 1);
      EXPECT_EQ(client.preempted, client.resumed);
      if (client.final->failure == FailureKind::larger_than_window) continue;
      ASSERT_NE(client.final->reason, FinishReason::failed);
      // Only who had not fitted the window that was in force when it came.
      const Tokens most = client.final->prompt_tokens + Tokens(asks_[i].max_tokens);
      if (client.final->truncated && most > windows_[i]) continue;
      EXPECT_FALSE(client.final->truncated);
      EXPECT_EQ(client.text, sim::solo_run(spec_.model, asks_[i]).text) << asks_[i].prompt;
    }
  }

  Random random_;
  const sim::RigSpec spec_;
  sim::Rig rig_;
  std::vector<sim::Ask> asks_;
  std::vector<Tokens> windows_;
  std::vector<std::unique_ptr<sim::Client>> clients_;
  std::vector<std::shared_ptr<scheduler::ChangeReply>> replies_;
  int changes_ = 0, rolled_back_ = 0;
};

class RandomChanges : public ::testing::TestWithParam<MemoryKind> {};

TEST_P(RandomChanges, EveryRequestGetsItsSoloTextOnce) {
  constexpr std::uint64_t seeds = 300;
  LogOptions quiet;
  quiet.disabled = true;  // Failed builds are wanted here.
  ASSERT_TRUE(start_logging(quiet));
  int changes = 0, rolled_back = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    History history(seed, GetParam());
    history.play();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    changes += history.changes();
    rolled_back += history.rolled_back();
  }
  EXPECT_GT(changes, 500);
  EXPECT_GT(rolled_back, 50);
}

INSTANTIATE_TEST_SUITE_P(Memories, RandomChanges,
                         ::testing::Values(MemoryKind::attention, MemoryKind::sliding_window,
                                           MemoryKind::recurrent, MemoryKind::hybrid));

}  // namespace
}  // namespace fermata
