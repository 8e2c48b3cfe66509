// Parking by hand: commands, receipts, and what a held request leaves behind.
#include "sim/rig.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

using scheduler::HoldAction;
using scheduler::HoldOutcome;
using scheduler::HoldReceipt;
using sim::Client;
using sim::Rig;
using sim::RigSpec;
using sim::solo_run;

RigSpec spec_of(int seats = 4) {
  RigSpec spec;
  spec.geometry.n_parallel = seats;
  spec.scheduler.bytes_per_token = Bytes(24) + engine::state_bytes_per_cell;
  return spec;
}

// Ticks until the client has read so many tokens.
void read_tokens(Rig& rig, Client& client, std::size_t n) {
  for (int i = 0; i < 1000 && client.tokens.size() < n; ++i) {
    rig.tick();
    client.read();
  }
  ASSERT_GE(client.tokens.size(), n);
}

HoldReceipt receipt_of(Rig& rig, const std::shared_ptr<scheduler::HoldReply>& reply) {
  rig.tick();
  const auto receipt = reply->take();
  EXPECT_TRUE(receipt.has_value());
  return receipt.value_or(HoldReceipt{});
}

TEST(Holding, AParkedRequestStaysOutUntilItIsLetBack) {
  Rig rig(spec_of());
  const auto client = rig.submit({.prompt = "north", .max_tokens = 20});
  read_tokens(rig, *client, 5);
  const auto parked = receipt_of(rig, rig.hold(HoldAction::park, Seat(0)));
  EXPECT_EQ(parked.outcome, HoldOutcome::done);
  EXPECT_EQ(parked.id, client->id);
  EXPECT_EQ(parked.seat, Seat(0));
  EXPECT_TRUE(parked.is_out);
  EXPECT_EQ(parked.mode, policy::ParkMode::swap);
  EXPECT_EQ(parked.bytes.value, rig.scheduler().stats().parked_bytes.value());
  EXPECT_GT(parked.bytes, Bytes(0));
  const std::size_t before = client->tokens.size();
  for (int i = 0; i < 50; ++i) rig.tick();
  client->read();
  EXPECT_EQ(client->tokens.size(), before) << "it came back by itself";
  EXPECT_EQ(client->preempted, 1);
  EXPECT_EQ(client->resumed, 0);
  EXPECT_EQ(rig.engine().cells_used(), Tokens(0));

  const auto back = receipt_of(rig, rig.hold(HoldAction::unpark, Seat(0)));
  EXPECT_EQ(back.outcome, HoldOutcome::done);
  EXPECT_FALSE(back.is_out) << "there was room: it resumed in the same tick";
  rig.run({client.get()});
  EXPECT_EQ(client->resumed, 1);
  EXPECT_EQ(client->text, solo_run({}, {.prompt = "north", .max_tokens = 20}).text);
  EXPECT_EQ(client->final->parking.swaps, 1);
  EXPECT_EQ(rig.scheduler().stats().held.value(), 0);
}

TEST(Holding, OverTheBudgetItIsComputedAgain) {
  RigSpec spec = spec_of();
  spec.scheduler.preempt_ram = Bytes(0);
  Rig rig(spec);
  const auto client = rig.submit({.prompt = "north", .max_tokens = 20});
  read_tokens(rig, *client, 5);
  const auto parked = receipt_of(rig, rig.hold(HoldAction::park, client->id));
  EXPECT_EQ(parked.mode, policy::ParkMode::recompute);
  EXPECT_EQ(parked.bytes, Bytes(0));
  EXPECT_GT(parked.tokens, Tokens(0));
  rig.hold(HoldAction::unpark, client->id);
  rig.run({client.get()});
  EXPECT_EQ(client->text, solo_run({}, {.prompt = "north", .max_tokens = 20}).text);
}

TEST(Holding, InTheMiddleOfAPromptNothingIsLost) {
  const sim::Ask ask{.prompt = std::string(120, 'p') + "q", .max_tokens = 20};
  for (const std::int64_t budget : {0, 1'000'000}) {
    RigSpec spec = spec_of();
    spec.engine.n_batch = Tokens(16);
    spec.scheduler.preempt_ram = Bytes(budget);
    Rig rig(spec);
    const auto client = rig.submit(ask);
    for (int i = 0; i < 3; ++i) rig.tick();
    const auto parked = receipt_of(rig, rig.hold(HoldAction::park, client->id));
    EXPECT_GT(parked.tokens, Tokens(0));
    EXPECT_LT(parked.tokens, Tokens(121));
    rig.hold(HoldAction::unpark, client->id);
    rig.run({client.get()});
    EXPECT_EQ(client->text, solo_run({}, ask).text);
    EXPECT_EQ(client->final->timings.prompt_computed, client->final->prompt_tokens);
  }
}

TEST(Holding, ARequestInTheQueueIsHeldAndPassedOver) {
  Rig rig(spec_of(1));
  const auto first = rig.submit({.prompt = "first", .max_tokens = 10});
  read_tokens(rig, *first, 1);
  const auto held = rig.submit({.prompt = "held", .max_tokens = 10});
  const auto behind = rig.submit({.prompt = "behind", .max_tokens = 10});
  const auto receipt = receipt_of(rig, rig.hold(HoldAction::park, held->id));
  EXPECT_EQ(receipt.outcome, HoldOutcome::done);
  EXPECT_TRUE(receipt.is_out);
  EXPECT_FALSE(receipt.mode.has_value());
  EXPECT_FALSE(receipt.seat.has_value());
  const auto status = rig.scheduler().status().read();
  ASSERT_EQ(status.parked.size(), 1U);
  EXPECT_TRUE(status.parked[0].is_queued);
  rig.run({first.get(), held.get(), behind.get()});
  EXPECT_EQ(behind->n_final, 1);
  EXPECT_EQ(held->n_final, 0);
  EXPECT_EQ(held->preempted, 1);
  EXPECT_EQ(rig.scheduler().stats().held.value(), 1);
  rig.hold(HoldAction::unpark, held->id);
  rig.run({held.get()});
  EXPECT_EQ(held->n_final, 1);
  EXPECT_EQ(held->resumed, 1);
  EXPECT_EQ(held->final->parking.parks(), 0) << "it never was in the pool";
}

TEST(Holding, MistakesAreNamed) {
  Rig rig(spec_of());
  const auto client = rig.submit({.prompt = "north", .max_tokens = 20});
  read_tokens(rig, *client, 2);
  const auto outcome = [&](HoldAction action, auto whom) {
    return receipt_of(rig, rig.hold(action, whom)).outcome;
  };
  EXPECT_EQ(outcome(HoldAction::park, Seat(3)), HoldOutcome::nobody_there);
  EXPECT_EQ(outcome(HoldAction::unpark, Seat(0)), HoldOutcome::nobody_there);
  EXPECT_EQ(outcome(HoldAction::park, RequestId(77)), HoldOutcome::no_such_request);
  EXPECT_EQ(outcome(HoldAction::unpark, client->id), HoldOutcome::not_parked);
  const auto reply = std::make_shared<scheduler::HoldReply>();
  ASSERT_EQ(rig.scheduler().hold(
                {.action = HoldAction::park, .seat = Seat(1), .id = client->id, .reply = reply}),
            scheduler::SubmitOutcome::accepted);
  EXPECT_EQ(receipt_of(rig, reply).outcome, HoldOutcome::not_on_seat);
  rig.run({client.get()});
  EXPECT_EQ(client->preempted, 0);
}

TEST(Holding, CommandsHaveALimit) {
  RigSpec spec = spec_of();
  spec.scheduler.holds_max = 2;
  Rig rig(spec);
  const auto ask = [&] {
    return rig.scheduler().hold({.action = HoldAction::park,
                                 .seat = Seat(0),
                                 .reply = std::make_shared<scheduler::HoldReply>()});
  };
  EXPECT_EQ(ask(), scheduler::SubmitOutcome::accepted);
  EXPECT_EQ(ask(), scheduler::SubmitOutcome::accepted);
  EXPECT_EQ(ask(), scheduler::SubmitOutcome::queue_full);
  rig.tick();
  EXPECT_EQ(ask(), scheduler::SubmitOutcome::accepted);
}

TEST(Holding, WhoLeavesWhileHeldLeavesNothing) {
  Rig rig(spec_of(1));
  const auto parked = rig.submit({.prompt = "parked", .max_tokens = 50});
  read_tokens(rig, *parked, 3);
  rig.hold(HoldAction::park, parked->id);
  rig.tick();
  const auto runs = rig.submit({.prompt = "runs", .max_tokens = 50});
  const auto queued = rig.submit({.prompt = "queued", .max_tokens = 50});
  rig.hold(HoldAction::park, queued->id);
  rig.tick();
  EXPECT_EQ(rig.scheduler().stats().held.value(), 2);
  for (Client* client : {parked.get(), queued.get()}) client->channel->abandon();
  rig.tick();
  for (Client* client : {parked.get(), queued.get()}) {
    client->read();
    ASSERT_EQ(client->n_final, 1);
    EXPECT_EQ(client->final->reason, FinishReason::cancelled);
  }
  const scheduler::SchedulerStats& stats = rig.scheduler().stats();
  EXPECT_EQ(stats.held.value(), 0);
  EXPECT_EQ(stats.parked.value(), 0);
  EXPECT_EQ(stats.parked_bytes.value(), 0);
  rig.run({runs.get()});
  EXPECT_EQ(runs->tokens.size(), 50U);
}

TEST(Holding, ShutdownEndsTheHeldAndRefusesCommands) {
  Rig rig(spec_of());
  const auto held = rig.submit({.prompt = "held", .max_tokens = 50});
  read_tokens(rig, *held, 3);
  rig.hold(HoldAction::park, held->id);
  rig.tick();
  const auto late = rig.hold(HoldAction::unpark, held->id);
  rig.scheduler().stop_gracefully();
  EXPECT_EQ(receipt_of(rig, late).outcome, HoldOutcome::stopping);
  held->read();
  ASSERT_EQ(held->n_final, 1);
  EXPECT_EQ(held->final->failure, FailureKind::stopping);
  EXPECT_EQ(rig.scheduler().hold({.action = HoldAction::park, .seat = Seat(0), .reply = late}),
            scheduler::SubmitOutcome::stopping);
}

TEST(Holding, CommandsThatNobodyTookAreAnsweredWhenTheSchedulerEnds) {
  auto reply = std::make_shared<scheduler::HoldReply>();
  bool woken = false;
  reply->wake_with([&] { woken = true; });
  {
    Rig rig(spec_of());
    ASSERT_EQ(rig.scheduler().hold({.action = HoldAction::park, .seat = Seat(0), .reply = reply}),
              scheduler::SubmitOutcome::accepted);
  }
  EXPECT_TRUE(woken);
  const auto receipt = reply->take();
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->outcome, HoldOutcome::stopping);
}

TEST(Holding, ParkedForRoomAndThenHeldStaysParked) {
  RigSpec spec = spec_of();
  Rig rig(spec);
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Client*> readers;
  for (const char* prompt : {"north", "east", "south", "west"}) {
    clients.push_back(rig.submit({.prompt = prompt, .max_tokens = 150}));
    readers.push_back(clients.back().get());
  }
  while (rig.scheduler().stats().parked.value() == 0) {
    ASSERT_TRUE(rig.tick());
    for (Client* client : readers) client->read();
  }
  const RequestId id = rig.scheduler().status().read().parked[0].request->id;
  EXPECT_EQ(receipt_of(rig, rig.hold(HoldAction::park, id)).outcome, HoldOutcome::done);
  rig.run(readers);
  int done = 0;
  for (const auto& client : clients) done += client->n_final;
  EXPECT_EQ(done, 3) << "the held one does not keep the others out";
  rig.hold(HoldAction::unpark, id);
  rig.run(readers);
  for (const auto& client : clients) EXPECT_EQ(client->tokens.size(), 150U);
}

}  // namespace
}  // namespace fermata
