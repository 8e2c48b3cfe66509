// Requests that leave the pool and come back: their text, their bill and what they leave behind.
#include "sim/rig.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

using sim::Ask;
using sim::Client;
using sim::Rig;
using sim::RigSpec;
using sim::solo_run;

RigSpec with_budget(std::optional<std::int64_t> bytes) {
  RigSpec spec;
  spec.scheduler.bytes_per_token = Bytes(24) + engine::state_bytes_per_cell;
  spec.scheduler.preempt_ram.reset();
  if (bytes) spec.scheduler.preempt_ram = Bytes(*bytes);
  return spec;
}

std::vector<std::unique_ptr<Client>> run_four(Rig& rig) {
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Client*> readers;
  for (const char* prompt : {"north", "east", "south", "west"}) {
    clients.push_back(rig.submit({.prompt = prompt, .max_tokens = 150}));
    readers.push_back(clients.back().get());
  }
  rig.run(readers);
  return clients;
}

std::uint64_t sum(const std::array<Counter, policy::park_reasons>& counts) {
  std::uint64_t out = 0;
  for (const Counter& count : counts) out += count.value();
  return out;
}

std::uint64_t observations(const TimeHistogram& times) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < TimeHistogram::buckets; ++i) out += times.count(i);
  return out;
}

class Budgets : public ::testing::TestWithParam<std::optional<std::int64_t>> {};

TEST_P(Budgets, FourThatOverflowThePoolAllGetTheirSoloText) {
  Rig rig(with_budget(GetParam()));
  const auto clients = run_four(rig);
  std::int32_t parks = 0;
  for (const auto& client : clients) {
    ASSERT_EQ(client->n_final, 1);
    EXPECT_EQ(client->final->reason, FinishReason::limit);
    EXPECT_EQ(client->tokens.size(), 150U);
    parks += client->final->parking.parks();
  }
  EXPECT_EQ(clients[0]->text, solo_run({}, {.prompt = "north", .max_tokens = 150}).text);
  EXPECT_EQ(clients[3]->text, solo_run({}, {.prompt = "west", .max_tokens = 150}).text);
  const scheduler::SchedulerStats& stats = rig.scheduler().stats();
  EXPECT_GT(parks, 0);
  EXPECT_EQ(stats.resumes.value(), static_cast<std::uint64_t>(parks));
  EXPECT_EQ(sum(stats.swaps_by_reason), stats.parks_swap.value());
  EXPECT_EQ(sum(stats.recomputes_by_reason), stats.parks_recompute.value());
  EXPECT_EQ(observations(stats.swap_out), stats.parks_swap.value());
  EXPECT_EQ(observations(stats.swap_in), stats.parks_swap.value());
  EXPECT_EQ(observations(stats.parked_time), stats.resumes.value());
  EXPECT_EQ(observations(stats.queue_time), 4U);
  if (GetParam() == 0) {
    EXPECT_EQ(stats.parks_swap.value(), 0U);
  }
  if (!GetParam()) {
    EXPECT_EQ(stats.parks_recompute.value(), 0U);
  }
  if (GetParam() == 5000) {
    EXPECT_GT(stats.parks_swap.value(), 0U);
    EXPECT_GT(stats.parks_recompute.value(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Bytes, Budgets,
                         ::testing::Values(std::nullopt, std::int64_t{1'000'000},
                                           std::int64_t{5000}, std::int64_t{0}));

// One request on a slow engine whose time is known; parked after each five tokens.
FinalEvent run_timed(std::optional<std::int64_t> budget, std::int64_t every) {
  RigSpec spec = with_budget(budget);
  spec.model.cost = {Micros(100), Micros(10), 0};
  spec.scheduler.preempt.every = Tokens(every);
  Rig rig(spec);
  const auto client = rig.submit({.prompt = std::string(100, 'p'), .max_tokens = 40});
  rig.run({client.get()});
  return *client->final;
}

TEST(Parking, IsNotBilled) {  // "prompt_n 384 for a prompt of 20 tokens", and rates of the replay
  const FinalEvent plain = run_timed(std::nullopt, 0);
  for (const std::optional<std::int64_t> budget : {std::optional<std::int64_t>(), {0}}) {
    const FinalEvent parked = run_timed(budget, 5);
    EXPECT_EQ(parked.parking.parks(), 7);
    EXPECT_EQ(parked.timings.prompt_computed, plain.timings.prompt_computed);
    EXPECT_EQ(parked.timings.prompt_time, plain.timings.prompt_time);
    EXPECT_EQ(parked.timings.predicted, plain.timings.predicted);
    EXPECT_EQ(parked.timings.predicted_time, plain.timings.predicted_time);
    if (!budget) {
      EXPECT_EQ(parked.parking.recomputed, Tokens(0));
      continue;
    }
    // After 5, 10, ... 35 tokens, of which the last was no row yet.
    EXPECT_EQ(parked.parking.recomputed,
              plain.prompt_tokens * 7 + Tokens(4 + 9 + 14 + 19 + 24 + 29 + 34));
    EXPECT_GT(parked.parking.time, Micros(0));
  }
}

TEST(Parking, TheBudgetIsFreeAgainOnceTheyAreBack) {  // (10) resumed ones kept their buffers
  RigSpec spec = with_budget(1400);                   // Not twice the image of this one.
  spec.scheduler.preempt.every = Tokens(2);
  Rig rig(spec);
  const auto client = rig.submit({.prompt = "north", .max_tokens = 30});
  Bytes most{0};
  while (client->n_final == 0) {
    rig.tick();
    client->read();
    most = std::max(most, Bytes(rig.scheduler().stats().parked_bytes.value()));
  }
  EXPECT_GT((most * 2).value, 1400) << "the test asks for too little";
  EXPECT_EQ(client->final->parking.swaps, 14);
  EXPECT_EQ(client->final->parking.recomputes, 0);
}

TEST(Parking, EveryResumeBuysTokens) {  // (20), (3 of group A) parked again at once, thrashing
  for (const std::optional<std::int64_t> budget : {std::optional<std::int64_t>(), {0}}) {
    RigSpec spec = with_budget(budget);
    spec.geometry.n_ctx = Tokens(640);
    spec.scheduler.preempt.rotate_after = Micros(0);  // As impatient as can be.
    Rig rig(spec);
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Client*> readers;
    for (const char name : {'n', 'e', 's', 'w'}) {
      clients.push_back(rig.submit({.prompt = std::string(200, name), .max_tokens = 200}));
      readers.push_back(clients.back().get());
    }
    rig.run(readers);
    std::int32_t parks = 0;
    for (const auto& client : clients) {
      ASSERT_EQ(client->n_final, 1);
      EXPECT_EQ(client->tokens.size(), 200U);
      EXPECT_LE(client->final->parking.parks(), 10);
      parks += client->final->parking.parks();
      // preempted, resumed, preempted, ...: from each resume to the next park.
      for (std::size_t i = 1; i + 1 < client->tokens_at_notice.size(); i += 2) {
        EXPECT_GE(client->tokens_at_notice[i + 1] - client->tokens_at_notice[i], 64U);
      }
    }
    EXPECT_GT(parks, 0);
  }
}

TEST(Parking, IdleConversationsDoNotKeepTheParkedOut) {  // (1) the pool was believed to be empty
  Rig rig(with_budget(std::nullopt));
  std::vector<std::unique_ptr<Client>> idle;
  for (const char* prompt : {"first idle one", "second idle one"}) {
    idle.push_back(rig.submit({.prompt = prompt, .max_tokens = 80}));
    rig.run({idle.back().get()});
  }
  EXPECT_GT(rig.engine().cells_used(), Tokens(150));
  for (const auto& client : run_four(rig)) EXPECT_EQ(client->tokens.size(), 150U);
  EXPECT_GT(rig.scheduler().stats().seats_evicted.value(), 0U);
  EXPECT_EQ(rig.scheduler().stats().no_room_steps.value(), 0U);
}

TEST(Parking, WhoLeavesWhileParkedLeavesNothing) {
  Rig rig(with_budget(std::nullopt));
  std::vector<std::unique_ptr<Client>> clients;
  for (const char* prompt : {"north", "east", "south"}) {
    clients.push_back(rig.submit({.prompt = prompt, .max_tokens = -1}));
  }
  while (rig.scheduler().stats().parked.value() == 0) {
    ASSERT_TRUE(rig.tick());
    for (const auto& client : clients) client->read();
  }
  EXPECT_GT(rig.scheduler().stats().parked_bytes.value(), 0);
  for (const auto& client : clients) client->channel->abandon();
  rig.tick();
  for (const auto& client : clients) {
    client->read();
    EXPECT_EQ(client->n_final, 1);
    EXPECT_EQ(client->final->reason, FinishReason::cancelled);
  }
  EXPECT_EQ(rig.scheduler().stats().parked.value(), 0);
  EXPECT_EQ(rig.scheduler().stats().parked_bytes.value(), 0);
}

TEST(Parking, ABrokenStepDoesNotTouchTheParked) {  // A decode error of the batch ended them too.
  RigSpec spec = with_budget(std::nullopt);
  Rig rig(spec);
  std::vector<std::unique_ptr<Client>> clients;
  for (const char* prompt : {"north", "east", "south"}) {
    clients.push_back(rig.submit({.prompt = prompt, .max_tokens = 120}));
  }
  std::vector<Client*> readers;
  for (const auto& client : clients) readers.push_back(client.get());
  while (rig.scheduler().stats().parked.value() == 0) {
    ASSERT_TRUE(rig.tick());
    for (Client* client : readers) client->read();
  }
  rig.engine().break_next_step();
  rig.run(readers);
  int good = 0, broken = 0;
  for (const auto& client : clients) {
    ASSERT_EQ(client->n_final, 1);
    if (client->final->reason == FinishReason::failed) {
      EXPECT_EQ(client->final->failure, FailureKind::engine_broken);
      ++broken;
    } else {
      EXPECT_EQ(client->tokens.size(), 120U);
      ++good;
    }
  }
  EXPECT_EQ(good, 1);
  EXPECT_EQ(broken, 2);
}

TEST(Parking, NoticesComeInPairsBetweenTheTokens) {
  RigSpec spec = with_budget(0);
  spec.scheduler.preempt.every = Tokens(3);
  Rig rig(spec);
  const auto client = rig.submit({.prompt = "told", .max_tokens = 10});
  for (int i = 0; i < 200; ++i) rig.tick();
  scheduler::EventChannel::Taken taken;
  client->channel->take(taken);
  ASSERT_EQ(taken.notices.size(), 6U);
  for (std::size_t i = 0; i < taken.notices.size(); ++i) {
    EXPECT_EQ(taken.notices[i].kind, i % 2 == 0 ? NoticeKind::preempted : NoticeKind::resumed);
    EXPECT_EQ(taken.notices[i].after, (i / 2 + 1) * 3);
  }
}

TEST(Parking, WithoutItWhoFindsNoCellFailsAndTheOthersEnd) {
  RigSpec spec;
  spec.scheduler.preempt.enabled = false;
  Rig rig(spec);
  const auto clients = run_four(rig);
  int full = 0;
  for (const auto& client : clients) {
    ASSERT_EQ(client->n_final, 1);
    if (client->final->failure == FailureKind::pool_full) {
      ++full;
    } else {
      EXPECT_EQ(client->tokens.size(), 150U);
    }
  }
  EXPECT_GT(full, 0);
  EXPECT_LT(full, 4);
}

TEST(Parking, ASequenceThatIsParkedOftenIsCopiedOnceNotEveryTime) {
  RigSpec spec = with_budget(std::nullopt);
  spec.scheduler.preempt.every = Tokens(10);
  spec.scheduler.block = Tokens(8);
  spec.model.cost = {Micros(100), Micros(10), 0};
  Rig rig(spec);
  const auto client = rig.submit({.prompt = "far", .max_tokens = 200});
  rig.run({client.get()});
  EXPECT_EQ(client->text, solo_run({}, {.prompt = "far", .max_tokens = 200}).text);
  EXPECT_GE(client->final->parking.swaps, 19);
  EXPECT_GT(rig.scheduler().stats().blocks_mirrored.value(), 10U);
  // Nineteen whole copies would be about two thousand tokens.
  EXPECT_LT(rig.engine().exported(), Tokens(420));
  EXPECT_EQ(rig.scheduler().stats().mirrored_bytes.value(), 0);
}

// Four chats overflow the pool and the counting of cells is switched off: the step itself says it.
TEST(Parking, WithoutThePlannerTheLastResortKeepsEveryText) {
  RigSpec spec = with_budget(5000);
  spec.scheduler.preempt.planner = false;
  Rig rig(spec);
  const auto clients = run_four(rig);
  for (const auto& client : clients) {
    ASSERT_EQ(client->n_final, 1);
    EXPECT_EQ(client->tokens.size(), 150U);
  }
  EXPECT_EQ(clients[2]->text, solo_run({}, {.prompt = "south", .max_tokens = 150}).text);
  EXPECT_GT(rig.scheduler().stats().no_room_steps.value(), 0U);
  EXPECT_EQ(rig.scheduler().stats().broken_steps.value(), 0U);
}

}  // namespace
}  // namespace fermata
