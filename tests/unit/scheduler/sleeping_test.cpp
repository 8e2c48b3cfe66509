// An idle scheduler does without its engine, and whoever comes does not see it.
#include "scheduler/sleeping.h"

#include "base/log.h"
#include "sim/rig.h"

#include <gtest/gtest.h>

namespace fermata::scheduler {
namespace {

constexpr Micros idle{1'000'000};

TEST(Sleep, GoesDeeperWithTime) {
  Sleep sleep({Micros(10), Micros(30)}, Micros(100));
  EXPECT_EQ(sleep.due(Micros(109)), Depth::awake);
  EXPECT_EQ(sleep.next(Micros(105)), Micros(5));
  EXPECT_EQ(sleep.due(Micros(110)), Depth::context);
  EXPECT_EQ(sleep.due(Micros(130)), Depth::weights);
  sleep.reach(Depth::context);
  EXPECT_EQ(sleep.next(Micros(110)), Micros(20));
  EXPECT_EQ(sleep.next(Micros(200)), Micros(0)) << "never negative";
  sleep.reach(Depth::weights);
  EXPECT_EQ(sleep.next(Micros(130)), std::nullopt);
  sleep.stir(Micros(140));
  EXPECT_EQ(sleep.depth(), Depth::context) << "the weights may be there again";
  EXPECT_EQ(sleep.due(Micros(150)), Depth::context);
  EXPECT_EQ(sleep.due(Micros(170)), Depth::weights);
}

TEST(Sleep, NeverUnlessAsked) {
  const Sleep sleep({std::nullopt, Micros(0)}, Micros(0));
  EXPECT_EQ(sleep.due(Micros(1'000'000'000)), Depth::awake);
  EXPECT_EQ(sleep.next(Micros(0)), std::nullopt);
  const Sleep only_context({Micros(10), std::nullopt}, Micros(0));
  EXPECT_EQ(only_context.due(Micros(1'000'000)), Depth::context);
}

sim::RigSpec sleepy() {
  sim::RigSpec spec;
  spec.scheduler.sleep = {idle, idle};
  spec.scheduler.cache_ram = Bytes(1 << 20);
  spec.scheduler.cache_min = Tokens(4);
  spec.scheduler.bytes_per_token = Bytes(24) + engine::state_bytes_per_cell;
  return spec;
}

class Sleeping : public ::testing::Test {
 protected:
  explicit Sleeping(const sim::RigSpec& spec = sleepy()) : rig_(spec) {
    LogOptions quiet;
    quiet.disabled = true;  // Failed builds are wanted here.
    EXPECT_TRUE(start_logging(quiet));
  }

  std::unique_ptr<sim::Client> ask(const std::string& prompt) {
    auto client = rig_.submit({.prompt = prompt});
    for (int i = 0; i < 10'000 && !client->final; ++i) {
      rig_.tick();
      client->read();
    }
    return client;
  }
  void fall_asleep() {
    rig_.clock().advance(idle);
    for (int i = 0; i < 4; ++i) rig_.tick();
    ASSERT_EQ(rig_.status().depth, Depth::weights);
    ASSERT_EQ(rig_.workshop().engines(), 0U);
  }

  sim::Rig rig_;
};

TEST_F(Sleeping, AConversationGoesOnFromWhereItWas) {
  const auto first = ask("a conversation that goes on");
  fall_asleep();
  const auto second = ask("a conversation that goes on" + first->text + " and on");
  ASSERT_TRUE(second->final);
  EXPECT_EQ(second->final->prefix_source, PrefixSource::ram);
  EXPECT_GT(second->final->timings.prompt_cached, Tokens(20));
  EXPECT_EQ(rig_.status().depth, Depth::awake);
  EXPECT_EQ(rig_.scheduler().stats().wakes.value(), 1U);
  fall_asleep();
  EXPECT_EQ(rig_.scheduler().stats().sleeps.value(), 2U);
}

TEST_F(Sleeping, FiftyTimesOver) {
  std::string text = "again and again";
  for (int round = 0; round < 50; ++round) {
    const auto client = ask(text);
    ASSERT_TRUE(client->final);
    if (round > 0) {
      EXPECT_GT(client->final->timings.prompt_cached, Tokens(8));
    }
    if (text.size() < 200) text += client->text;
    fall_asleep();
  }
}

TEST_F(Sleeping, WhoComesAtTheVeryMomentIsServed) {
  // H4: it was put in a queue that nobody served. Each offset around the moment, in ticks.
  for (int offset = -3; offset <= 8; ++offset) {
    (void)ask("something before");
    rig_.clock().advance(idle);
    for (int i = -3; i < offset; ++i) rig_.tick();
    const auto client = ask("at that moment");
    ASSERT_TRUE(client->final) << offset;
    EXPECT_NE(client->final->reason, FinishReason::failed);
  }
}

TEST_F(Sleeping, WhoLeavesWhileItWakesLeavesNothing) {
  fall_asleep();
  auto client = rig_.submit({.prompt = "never mind"});
  rig_.tick();
  client->channel->abandon();
  for (int i = 0; i < 20; ++i) rig_.tick();
  client->read();
  EXPECT_TRUE(client->final);
  EXPECT_EQ(rig_.status().n_waiting, 0);
  EXPECT_EQ(rig_.status().depth, Depth::awake);
  fall_asleep();
}

TEST_F(Sleeping, AContextThatCannotBeBuiltIsAnAnswerInTime) {
  // The model's file was gone, and clients hung.
  fall_asleep();
  rig_.workshop().set_faults(100);
  auto client = rig_.submit({.prompt = "hello"});
  for (int i = 0; i < 200 && !client->final; ++i) {
    rig_.tick();
    client->read();
    rig_.clock().advance(Micros(100'000));
  }
  ASSERT_TRUE(client->final);
  EXPECT_EQ(client->final->failure, FailureKind::no_engine);
  EXPECT_LT(rig_.clock().now(), Micros(20'000'000));
  rig_.workshop().set_faults(0);
  rig_.clock().advance(Micros(2'000'000));
  EXPECT_NE(ask("hello")->final->reason, FinishReason::failed);
}

TEST_F(Sleeping, AChangeOfTheGeometryWakesIt) {
  fall_asleep();
  reconfigure::Change change;
  change.n_parallel = 2;
  const auto reply = rig_.change(change);
  for (int i = 0; i < 20; ++i) rig_.tick();
  const auto receipt = reply->take();
  ASSERT_TRUE(receipt);
  EXPECT_EQ(receipt->outcome, reconfigure::Receipt::Outcome::done);
  EXPECT_EQ(receipt->path, reconfigure::Path::in_place);
  EXPECT_EQ(rig_.status().depth, Depth::awake);
  EXPECT_EQ(rig_.status().limits.seats, 2);
  fall_asleep();
  EXPECT_TRUE(ask("hello")->final);
  EXPECT_EQ(rig_.status().limits.seats, 2);
}

TEST_F(Sleeping, WhoIsHeldKeepsItAwake) {
  auto client = rig_.submit({.prompt = "hold me", .max_tokens = 30});
  for (int i = 0; i < 4; ++i) rig_.tick();
  const auto receipt = rig_.hold(HoldAction::park, client->id);
  for (int i = 0; i < 4; ++i) rig_.tick();
  ASSERT_TRUE(receipt->take());
  rig_.clock().advance(idle * 5);
  for (int i = 0; i < 4; ++i) rig_.tick();
  EXPECT_EQ(rig_.status().depth, Depth::awake);
}

TEST_F(Sleeping, AnOperatorWhoCommandsWithoutAnEngineIsAnswered) {
  // park and unpark while no context was there ended the process.
  fall_asleep();
  rig_.workshop().set_faults(100);
  auto client = rig_.submit({.prompt = "hello"});
  rig_.tick();
  const auto parked = rig_.hold(HoldAction::park, client->id);
  rig_.tick();
  const auto receipt = parked->take();
  ASSERT_TRUE(receipt);
  EXPECT_EQ(receipt->outcome, HoldOutcome::done);
  EXPECT_TRUE(receipt->is_out);
}

}  // namespace
}  // namespace fermata::scheduler
