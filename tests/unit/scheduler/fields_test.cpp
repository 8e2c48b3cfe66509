// What a request may ask of its reply beside tokens.
#include "sim/rig.h"

#include <array>

#include <gtest/gtest.h>

namespace fermata {
namespace {

using sim::Ask;
using sim::Client;
using sim::Rig;
using sim::RigSpec;
using sim::solo_run;

Ask forced(const std::string& text) {
  Ask ask{.prompt = "p", .max_tokens = 100};
  ask.grammar = "root ::= \"" + text + "\"";
  return ask;
}

TEST(RequestFields, ProgressIsToldUntilThePromptIsWhole) {
  Rig rig(RigSpec{});
  Ask ask{.prompt = std::string(150, 'p'), .max_tokens = 3};
  const auto quiet = rig.submit(ask);
  rig.run({quiet.get()});
  EXPECT_TRUE(quiet->progress.empty());
  ask.prompt[0] = 'q';
  ask.wants_progress = true;
  const auto told = rig.submit(ask);
  rig.run({told.get()});
  ASSERT_GE(told->progress.size(), 2U);
  Tokens last{0};
  for (const ProgressEvent& event : told->progress) {
    EXPECT_EQ(event.total, Tokens(150));
    EXPECT_EQ(event.cached, Tokens(0));
    EXPECT_GT(event.processed, last);
    last = event.processed;
  }
  EXPECT_EQ(last, Tokens(150));
}

TEST(RequestFields, ProgressIsNeverToldTwiceThoughThePromptIsComputedAgain) {
  RigSpec spec;
  spec.scheduler.preempt_ram = Bytes(0);
  Rig rig(spec);
  Ask ask{.prompt = std::string(150, 'p'), .max_tokens = 3};
  ask.wants_progress = true;
  const auto client = rig.submit(ask);
  while (client->progress.empty()) {
    rig.tick();
    client->read();
  }
  (void)rig.hold(scheduler::HoldAction::park, client->id);
  rig.tick();
  (void)rig.hold(scheduler::HoldAction::unpark, client->id);
  rig.run({client.get()});
  EXPECT_EQ(client->final->parking.recomputes, 1);
  for (std::size_t i = 1; i < client->progress.size(); ++i) {
    EXPECT_GT(client->progress[i].processed, client->progress[i - 1].processed);
  }
  EXPECT_EQ(client->progress.back().processed, Tokens(150));
}

TEST(RequestFields, TimingsComeWithEveryTokenWhenAskedFor) {
  Rig rig(RigSpec{});
  Ask ask{.prompt = "some prompt", .max_tokens = 5};
  ask.wants_timings = true;
  const auto client = rig.submit(ask);
  rig.run({client.get()});
  ASSERT_EQ(client->tokens.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(client->tokens[i].timings.has_value());
    EXPECT_EQ(client->tokens[i].timings->predicted, Tokens(static_cast<std::int64_t>(i) + 1));
    EXPECT_EQ(client->tokens[i].timings->prompt_computed, Tokens(11));
  }
  EXPECT_EQ(client->tokens.back().timings->predicted_time, client->final->timings.predicted_time);
  ask.wants_timings = false;
  const auto quiet = rig.submit(ask);
  rig.run({quiet.get()});
  for (const TokenEvent& event : quiet->tokens) EXPECT_FALSE(event.timings.has_value());
}

TEST(RequestFields, ALineTooFarLeftEndsTheReply) {
  Rig rig(RigSpec{});
  Ask ask = forced("a\\n  b\\n c");
  ask.n_indent = 2;
  const auto client = rig.submit(ask);
  rig.run({client.get()});
  EXPECT_EQ(client->text, "a\n  b\n ");
  EXPECT_EQ(client->final->reason, FinishReason::limit);
  EXPECT_TRUE(client->final->is_cut);
  EXPECT_FALSE(client->final->truncated);
}

TEST(RequestFields, TheIndentationCountsInWhatAStopWordHeldBack) {
  Rig rig(RigSpec{});
  // The end of the text may still become the stop word, until the reply ends.
  Ask ask = forced("a\\nb");
  ask.stop = {"\nbc"};
  ask.n_indent = 1;
  const auto client = rig.submit(ask);
  rig.run({client.get()});
  EXPECT_EQ(client->text, "a\n");
  EXPECT_EQ(client->final->reason, FinishReason::limit);
  // A stop word before the line is met as ever.
  ask.stop = {"a"};
  const auto stopped = rig.submit(ask);
  rig.run({stopped.get()});
  EXPECT_EQ(stopped->text, "");
  EXPECT_EQ(stopped->final->reason, FinishReason::word);
}

TEST(RequestFields, ALimitOfTimeWaitsForTheEndOfALine) {
  RigSpec spec;
  spec.model.cost.base = Micros(1000);
  Rig rig(spec);
  Ask ask = forced("ab\\ncdefg\\nhi");
  ask.predict_time_max = Micros(4500);
  const auto client = rig.submit(ask);
  rig.run({client.get()});
  EXPECT_EQ(client->text, "ab\ncdefg\n");
  EXPECT_EQ(client->final->reason, FinishReason::limit);
  Ask one_line = forced("abcdefghi");
  one_line.predict_time_max = Micros(4500);
  const auto whole = rig.submit(one_line);
  rig.run({whole.get()});
  EXPECT_EQ(whole->text, "abcdefghi");
}

TEST(RequestFields, SeveralPromptsOfOneSubmissionEachGetTheirReply) {
  for (const std::size_t choices : {1U, 3U}) {
    Rig rig(RigSpec{});
    std::array<Ask, 5> asks;
    for (std::size_t i = 0; i < asks.size(); ++i) {
      asks[i] = {.prompt = std::string(30 + i, static_cast<char>('a' + i)), .max_tokens = 12};
      asks[i].temperature = 1.0F;
    }
    const auto clients = rig.submit(asks, choices);
    ASSERT_EQ(clients.size(), asks.size() * choices);
    std::vector<Client*> readers;
    for (const auto& client : clients) readers.push_back(client.get());
    rig.run(readers);
    for (std::size_t i = 0; i < clients.size(); ++i) {
      Ask alone = asks[i / choices];
      alone.seed += static_cast<std::uint32_t>(i % choices);
      EXPECT_EQ(clients[i]->text, solo_run({}, alone).text) << i;
    }
  }
}

TEST(RequestFields, SeveralPromptsAreTakenAllOrNone) {
  RigSpec spec;
  spec.scheduler.waiting_max = 4;
  Rig rig(spec);
  const std::array<Ask, 3> asks{Ask{.prompt = "a"}, Ask{.prompt = "b"}, Ask{.prompt = "c"}};
  const auto refused = rig.submit(asks, 2);
  for (const auto& client : refused) {
    EXPECT_EQ(client->outcome, scheduler::SubmitOutcome::queue_full);
  }
  const auto taken = rig.submit(asks, 1);
  std::vector<Client*> readers;
  for (const auto& client : taken) readers.push_back(client.get());
  rig.run(readers);
  for (const auto& client : taken) EXPECT_EQ(client->n_final, 1);
}

}  // namespace
}  // namespace fermata
