// One scheduler on the fake engine, seen from its clients.
#include "scheduler/scheduler.h"

#include "sim/rig.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

using sim::Ask;
using sim::Client;
using sim::Rig;
using sim::RigSpec;
using sim::solo_run;

TEST(Scheduler, OneRequestGetsItsTokensAndOneFinalEvent) {
  Rig rig({});
  const auto client = rig.submit({.prompt = "hello there", .max_tokens = 20});
  rig.run({client.get()});
  ASSERT_EQ(client->n_final, 1);
  EXPECT_EQ(client->final->reason, FinishReason::limit);
  EXPECT_EQ(client->tokens.size(), 20U);
  EXPECT_EQ(client->final->timings.predicted, Tokens(20));
  EXPECT_EQ(client->final->timings.prompt_computed, Tokens(11));
  EXPECT_EQ(client->final->timings.prompt_cached, Tokens(0));
  EXPECT_FALSE(client->final->truncated);
}

TEST(Scheduler, CompanyDoesNotChangeTheText) {
  Rig rig({});
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Client*> readers;
  std::vector<Ask> asks;
  for (int i = 0; i < 12; ++i) {
    asks.push_back({.prompt = "question " + std::to_string(i * i), .max_tokens = 10 + i});
    clients.push_back(rig.submit(asks.back()));
    readers.push_back(clients.back().get());
  }
  rig.run(readers);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    EXPECT_EQ(clients[i]->text, solo_run({}, asks[i]).text) << asks[i].prompt;
  }
}

TEST(Scheduler, SecondTurnComputesOnlyWhatIsNew) {
  Rig rig({});
  const auto first = rig.submit({.prompt = "a long system prompt. hi", .max_tokens = 8});
  rig.run({first.get()});
  const std::string next = "a long system prompt. hi" + first->text + " and then?";
  const auto second = rig.submit({.prompt = next, .max_tokens = 8});
  rig.run({second.get()});
  // The last token of the first reply was never computed, so it is new too.
  EXPECT_EQ(second->final->timings.prompt_cached.value,
            static_cast<std::int64_t>(24 + first->text.size() - 1));
  EXPECT_EQ(second->text, solo_run({}, {.prompt = next, .max_tokens = 8}).text);
}

TEST(Scheduler, AgentsShareTheCellsOfACommonPrompt) {
  Rig rig({});
  const std::string common(100, 's');
  const auto first = rig.submit({.prompt = common + "one", .max_tokens = 60});
  while (first->tokens.empty()) {
    rig.tick();
    first->read();
  }
  // 256 cells hold three of them only because the common part is there once.
  const auto second = rig.submit({.prompt = common + "two", .max_tokens = 40});
  const auto third = rig.submit({.prompt = common + "six", .max_tokens = 40});
  rig.tick();
  EXPECT_EQ(rig.scheduler().status().read().n_processing, 3);
  rig.run({first.get(), second.get(), third.get()});
  EXPECT_EQ(second->final->timings.prompt_cached, Tokens(100));
  EXPECT_EQ(third->final->timings.prompt_cached, Tokens(100));
  EXPECT_EQ(second->text, solo_run({}, {.prompt = common + "two", .max_tokens = 40}).text);
}

TEST(Scheduler, WhatCanNeverFitIsToldAtOnceAndOthersGoOn) {
  Rig rig({});
  const auto running = rig.submit({.prompt = "short", .max_tokens = 100});
  rig.tick();
  const auto giant = rig.submit({.prompt = std::string(256, 'x'), .max_tokens = 1});
  rig.tick();
  giant->read();
  ASSERT_EQ(giant->n_final, 1);
  EXPECT_EQ(giant->final->failure, FailureKind::larger_than_window);
  EXPECT_EQ(giant->final->prompt_tokens, Tokens(256));
  EXPECT_EQ(giant->final->window, Tokens(256));
  rig.run({running.get()});
  EXPECT_EQ(running->tokens.size(), 100U);
}

TEST(Scheduler, APromptOfOneLessThanTheWindowGetsOneToken) {
  Rig rig({});
  const auto client = rig.submit({.prompt = std::string(255, 'x'), .max_tokens = -1});
  rig.run({client.get()});
  EXPECT_EQ(client->final->reason, FinishReason::window);
  EXPECT_TRUE(client->final->truncated);
  EXPECT_EQ(client->tokens.size(), 1U);
}

TEST(Scheduler, ASeatThatDoesNotExistIsRefused) {
  Rig rig({});
  const auto client = rig.submit({.prompt = "x", .seat = Seat(4)});
  rig.run({client.get()});
  EXPECT_EQ(client->final->failure, FailureKind::no_such_seat);
}

TEST(Scheduler, AFullQueueRefusesAndTakesAgainLater) {
  RigSpec spec;
  spec.scheduler.waiting_max = 2;
  Rig rig(spec);
  const auto first = rig.submit({.prompt = "1"});
  const auto second = rig.submit({.prompt = "2"});
  const auto third = rig.submit({.prompt = "3"});
  EXPECT_EQ(third->outcome, scheduler::SubmitOutcome::queue_full);
  rig.run({first.get(), second.get()});
  const auto again = rig.submit({.prompt = "3"});
  EXPECT_EQ(again->outcome, scheduler::SubmitOutcome::accepted);
  rig.run({again.get()});
  EXPECT_EQ(again->n_final, 1);
}

TEST(Scheduler, AClientThatGoesAwayFreesItsCells) {
  RigSpec spec;
  spec.geometry.n_parallel = 1;
  Rig rig(spec);
  const auto running = rig.submit({.prompt = "gone soon", .max_tokens = -1});
  const auto queued = rig.submit({.prompt = "gone while waiting", .max_tokens = -1});
  rig.tick();
  rig.tick();
  EXPECT_EQ(rig.scheduler().status().read().n_processing, 1);
  queued->channel->abandon();
  running->channel->abandon();
  rig.tick();
  const scheduler::Status status = rig.scheduler().status().read();
  EXPECT_EQ(status.n_processing, 0);
  EXPECT_EQ(status.n_waiting, 0);
  // Its cells stay as idle, and the next request may have them.
  const auto next = rig.submit({.prompt = std::string(200, 'n'), .max_tokens = -1});
  rig.run({next.get()});
  EXPECT_EQ(next->final->reason, FinishReason::window);
}

TEST(Scheduler, ASlowReaderWaitsAloneAndLosesNothing) {
  RigSpec spec;
  spec.scheduler.events_max = 4;
  Rig rig(spec);
  const auto slow = rig.submit({.prompt = "slow", .max_tokens = 30});
  const auto quick = rig.submit({.prompt = "quick", .max_tokens = 30});
  rig.run({quick.get()});
  EXPECT_EQ(quick->tokens.size(), 30U);
  EXPECT_EQ(slow->n_final, 0);
  rig.run({slow.get()});
  EXPECT_EQ(slow->tokens.size(), 30U);
  EXPECT_EQ(slow->text, solo_run({}, {.prompt = "slow", .max_tokens = 30}).text);
}

TEST(Scheduler, ForcedTextStopsBeforeTheStopWord) {
  Rig rig({});
  const auto client = rig.submit({.prompt = "x",
                                  .max_tokens = 100,
                                  .stop = {"?\nN"},
                                  .grammar = "root ::= \"The sky is blue?\\nNext\""});
  rig.run({client.get()});
  EXPECT_EQ(client->text, "The sky is blue");
  EXPECT_EQ(client->final->reason, FinishReason::word);
  EXPECT_EQ(client->final->stop_word, "?\nN");
}

TEST(Scheduler, HeldBackTextIsReleasedWhenNoStopWordCame) {
  Rig rig({});
  const auto client = rig.submit({.prompt = "x",
                                  .max_tokens = 100,
                                  .stop = {"blue moon"},
                                  .grammar = "root ::= \"The sky is blue\""});
  rig.run({client.get()});
  EXPECT_EQ(client->text, "The sky is blue");
  EXPECT_EQ(client->final->reason, FinishReason::eos);
}

TEST(Scheduler, AGrammarsDeadEndEndsItsOwnRequestOnly) {
  Rig rig({});
  const auto bad = rig.submit({.prompt = "bad", .grammar = "root ::= ()"});
  const auto good = rig.submit({.prompt = "good", .max_tokens = 30});
  rig.run({bad.get(), good.get()});
  EXPECT_EQ(bad->final->failure, FailureKind::sampler_failed);
  EXPECT_EQ(good->tokens.size(), 30U);
}

TEST(Scheduler, NoTokensAskedMeansThePromptIsComputedAndKept) {
  Rig rig({});
  const auto warm = rig.submit({.prompt = "warm this up", .max_tokens = 0});
  rig.run({warm.get()});
  EXPECT_EQ(warm->final->reason, FinishReason::limit);
  EXPECT_TRUE(warm->tokens.empty());
  const auto next = rig.submit({.prompt = "warm this up!"});
  rig.run({next.get()});
  EXPECT_EQ(next->final->timings.prompt_cached, Tokens(12));
}

TEST(Scheduler, ABrokenEngineEndsItsRequestsAndServesTheNext) {
  RigSpec spec;
  spec.model.faults.broken_percent = 100;
  Rig broken(spec);
  const auto client = broken.submit({.prompt = "x"});
  broken.run({client.get()});
  EXPECT_EQ(client->final->failure, FailureKind::engine_broken);
  EXPECT_EQ(broken.scheduler().status().read().cells_used, Tokens(0));
  EXPECT_EQ(broken.engine().cells_used(), Tokens(0));
}

TEST(Scheduler, HigherPriorityIsAdmittedFirst) {
  RigSpec spec;
  spec.geometry.n_parallel = 1;
  Rig rig(spec);
  const auto first = rig.submit({.prompt = "first", .max_tokens = 5});
  rig.tick();
  const auto low = rig.submit({.prompt = "low", .max_tokens = 5, .priority = 0});
  const auto high = rig.submit({.prompt = "high", .max_tokens = 5, .priority = 3});
  while (high->n_final == 0) {
    ASSERT_TRUE(rig.tick());
    first->read();
    low->read();
    high->read();
  }
  EXPECT_EQ(low->n_final, 0);
  rig.run({low.get()});
  EXPECT_EQ(low->n_final, 1);
}

TEST(Scheduler, StopNowTellsEveryone) {
  Rig rig({});
  const auto running = rig.submit({.prompt = "a", .max_tokens = -1});
  const auto waiting = rig.submit({.prompt = "b", .max_tokens = -1});
  rig.tick();
  rig.scheduler().stop_now();
  rig.scheduler().run();  // Returns: nothing is left.
  running->read();
  waiting->read();
  EXPECT_EQ(running->final->failure, FailureKind::stopping);
  EXPECT_EQ(waiting->final->failure, FailureKind::stopping);
  EXPECT_EQ(rig.submit({.prompt = "c"})->outcome, scheduler::SubmitOutcome::stopping);
}

}  // namespace
}  // namespace fermata
