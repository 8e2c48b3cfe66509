// Choices of one request: one prompt, a seed each, and parks that take all of them.
#include "sim/rig.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fermata {
namespace {

using sim::Ask;
using sim::Client;
using sim::Rig;
using sim::RigSpec;
using sim::solo_run;

constexpr std::size_t choices = 3;
const Ask ask{.prompt = std::string(50, 'p'), .max_tokens = 20, .temperature = 1.0F};

std::vector<Client*> readers(const std::vector<std::unique_ptr<Client>>& clients) {
  std::vector<Client*> out;
  for (const auto& client : clients) out.push_back(client.get());
  return out;
}

void expect_solo_texts(const std::vector<std::unique_ptr<Client>>& clients, Ask of) {
  for (const auto& client : clients) {
    ASSERT_EQ(client->n_final, 1);
    EXPECT_EQ(client->text, solo_run({}, of).text) << "seed " << of.seed;
    ++of.seed;
  }
}

// Ticks until all of them have a token.
void run_until_all_decode(Rig& rig, const std::vector<std::unique_ptr<Client>>& clients) {
  const auto decodes = [](const auto& client) {
    client->read();
    return !client->tokens.empty();
  };
  while (!std::all_of(clients.begin(), clients.end(), decodes)) ASSERT_TRUE(rig.tick());
}

TEST(Groups, ComputeTheirPromptOnceAndGetTheTextsOfTheirSeeds) {
  for (const bool cache_prompt : {true, false}) {
    Rig rig{RigSpec{}};
    Ask of = ask;
    of.cache_prompt = cache_prompt;
    const auto clients = rig.submit(of, choices);
    run_until_all_decode(rig, clients);
    const Tokens used = rig.scheduler().status().read().cells_used;
    EXPECT_LT(used, Tokens(50 + choices * 20)) << "they share the cells of their prompt";
    rig.run(readers(clients));
    expect_solo_texts(clients, of);
    EXPECT_NE(clients[0]->text, clients[1]->text);
    // The last row is everybody's own.
    EXPECT_EQ(rig.scheduler().stats().prompt_tokens.value(), 50 + choices - 1);
  }
}

TEST(Groups, WhereCellsCannotBeSharedEachComputesItsPrompt) {
  RigSpec spec;
  spec.geometry.layout = Layout::split;
  spec.geometry.n_ctx = Tokens(1024);
  Rig rig(spec);
  const auto clients = rig.submit(ask, choices);
  rig.run(readers(clients));
  expect_solo_texts(clients, ask);
  EXPECT_EQ(rig.scheduler().stats().prompt_tokens.value(), 50 * choices);
}

TEST(Groups, AreQueuedAsAWholeOrNotAtAll) {
  RigSpec spec;
  spec.scheduler.waiting_max = choices;
  Rig rig(spec);
  const auto one = rig.submit(ask);
  const auto refused = rig.submit(ask, choices);
  for (const auto& client : refused) {
    EXPECT_EQ(client->outcome, scheduler::SubmitOutcome::queue_full);
  }
  rig.run({one.get()});
  const auto taken = rig.submit(ask, choices);
  rig.run(readers(taken));
  expect_solo_texts(taken, ask);
  for (const auto& client : refused) EXPECT_EQ(client->n_final, 0);
}

TEST(Groups, HeldByOneNameLeaveAndComeBackInNoMoreCells) {
  RigSpec spec;
  spec.scheduler.bytes_per_token = Bytes(24) + engine::state_bytes_per_cell;
  Rig rig(spec);
  const auto clients = rig.submit(ask, choices);
  run_until_all_decode(rig, clients);
  const Tokens before = rig.engine().cells_used();
  const auto parked = rig.hold(scheduler::HoldAction::park, clients[1]->id);
  rig.tick();
  ASSERT_TRUE(parked->take());
  EXPECT_EQ(rig.scheduler().status().read().parked.size(), choices);
  EXPECT_EQ(rig.engine().cells_used(), Tokens(0));
  EXPECT_EQ(rig.scheduler().stats().parked_bytes.value(), rig.engine().range_bytes(before).value)
      << "the prompt's bytes are there once";
  const auto back = rig.hold(scheduler::HoldAction::unpark, clients[2]->id);
  rig.tick();
  ASSERT_TRUE(back->take());
  EXPECT_EQ(rig.scheduler().status().read().parked.size(), 0U);
  EXPECT_EQ(rig.engine().cells_used(), before);
  rig.run(readers(clients));
  expect_solo_texts(clients, ask);
}

TEST(Groups, LargerThanThePoolTakeTurnsWithinThemselves) {
  for (const std::int64_t budget : {std::int64_t{1} << 20, std::int64_t{0}}) {
    RigSpec spec;
    spec.scheduler.bytes_per_token = Bytes(24) + engine::state_bytes_per_cell;
    spec.scheduler.preempt_ram = Bytes(budget);
    Rig rig(spec);
    Ask of = ask;
    of.max_tokens = 150;  // 50 + 3 * 150 cells in a pool of 256.
    const auto clients = rig.submit(of, choices);
    const auto other = rig.submit({.prompt = "somebody else", .max_tokens = 100});
    auto all = readers(clients);
    all.push_back(other.get());
    rig.run(all);
    expect_solo_texts(clients, of);
    EXPECT_EQ(other->text, solo_run({}, {.prompt = "somebody else", .max_tokens = 100}).text);
    EXPECT_GT(rig.scheduler().stats().parks_swap.value() +
                  rig.scheduler().stats().parks_recompute.value(),
              0U);
    EXPECT_EQ(rig.scheduler().stats().parked_bytes.value(), 0);
  }
}

TEST(Groups, AbandonedWhileParkedLeaveNothing) {
  Rig rig{RigSpec{}};
  const auto clients = rig.submit(ask, choices);
  run_until_all_decode(rig, clients);
  const auto parked = rig.hold(scheduler::HoldAction::park, clients[0]->id);
  rig.tick();
  ASSERT_GT(rig.scheduler().stats().parked_bytes.value(), 0);
  for (const auto& client : clients) client->channel->abandon();
  rig.run(readers(clients));
  EXPECT_EQ(rig.scheduler().stats().parked_bytes.value(), 0);
  EXPECT_EQ(rig.scheduler().stats().parked.value(), 0);
  for (const auto& client : clients) EXPECT_EQ(client->final->reason, FinishReason::cancelled);
}

}  // namespace
}  // namespace fermata
