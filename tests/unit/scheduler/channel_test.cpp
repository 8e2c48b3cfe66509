#include "scheduler/channel.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

namespace fermata::scheduler {
namespace {

TokenEvent token(std::int32_t id) {
  TokenEvent event;
  event.token = TokenId{id};
  event.text = std::to_string(id);
  return event;
}

FinalEvent final_event(FinishReason reason = FinishReason::eos) {
  FinalEvent event;
  event.reason = reason;
  return event;
}

std::vector<std::int32_t> ids(const EventChannel::Taken& taken) {
  std::vector<std::int32_t> out;
  for (const TokenEvent& event : taken.tokens) out.push_back(raw(event.token));
  return out;
}

// A channel of the given limit that counts the pokes of the scheduler and the wakes of the reader.
struct Counted {
  int pokes = 0, wakes = 0;
  EventChannel channel;

  explicit Counted(std::size_t limit) : channel(limit, [this] { ++pokes; }) {}
  void wake_at(std::size_t tokens) {
    channel.wake_with([this] { ++wakes; }, tokens);
  }
  EventChannel::Taken take() {
    EventChannel::Taken out;
    channel.take(out);
    return out;
  }
};

TEST(EventChannel, GivesEveryEventOnceInOrder) {
  Counted counted(4);
  counted.channel.push(token(1));
  counted.channel.push(token(2));
  EXPECT_EQ(ids(counted.take()), (std::vector<std::int32_t>{1, 2}));
  counted.channel.push(token(3));
  counted.channel.finish(final_event(FinishReason::limit));
  const EventChannel::Taken rest = counted.take();
  EXPECT_EQ(ids(rest), std::vector<std::int32_t>{3});
  ASSERT_TRUE(rest.final.has_value());
  EXPECT_EQ(rest.final->reason, FinishReason::limit);
  const EventChannel::Taken nothing = counted.take();
  EXPECT_TRUE(nothing.tokens.empty());
  EXPECT_FALSE(nothing.final.has_value());
}

TEST(EventChannel, TakeClearsWhatItIsGiven) {
  Counted counted(4);
  EventChannel::Taken reused;
  reused.tokens.push_back(token(9));
  reused.progress = ProgressEvent{};
  reused.final = final_event();
  counted.channel.take(reused);
  EXPECT_TRUE(reused.tokens.empty() && !reused.progress && !reused.final);
  // And what it was given does not come back either.
  counted.channel.push(token(1));
  counted.channel.take(reused);
  EXPECT_EQ(ids(reused), std::vector<std::int32_t>{1});
}

TEST(EventChannel, HasRoomUpToItsLimit) {
  Counted counted(2);
  counted.channel.push(token(1));
  EXPECT_TRUE(counted.channel.has_room());
  counted.channel.push(token(2));
  EXPECT_FALSE(counted.channel.has_room());
  (void)counted.take();
  EXPECT_TRUE(counted.channel.has_room());
}

TEST(EventChannel, FinishIsNeverRefused) {
  Counted full(1);
  full.channel.push(token(1));
  full.channel.finish(final_event());
  const EventChannel::Taken taken = full.take();
  EXPECT_EQ(ids(taken), std::vector<std::int32_t>{1});
  EXPECT_TRUE(taken.final.has_value());

  Counted left(1);
  left.channel.abandon();
  left.channel.finish(final_event(FinishReason::cancelled));
  EXPECT_EQ(left.take().final->reason, FinishReason::cancelled);
}

TEST(EventChannel, ProgressIsTheLatestAndTakesNoRoom) {
  Counted counted(1);
  for (int i = 1; i <= 5; ++i) {
    counted.channel.progress({Tokens(10), Tokens(0), Tokens(i), Micros(i), Seat(0)});
  }
  EXPECT_TRUE(counted.channel.has_room());
  EXPECT_EQ(counted.take().progress->processed, Tokens(5));
  EXPECT_FALSE(counted.take().progress.has_value());
}

TEST(EventChannel, TakePokesTheSchedulerOnlyWhenItWasFull) {
  Counted counted(2);
  (void)counted.take();
  counted.channel.push(token(1));
  (void)counted.take();
  EXPECT_EQ(counted.pokes, 0);
  counted.channel.push(token(2));
  counted.channel.push(token(3));
  (void)counted.take();
  EXPECT_EQ(counted.pokes, 1);
  (void)counted.take();
  EXPECT_EQ(counted.pokes, 1);
}

// The scheduler may be gone by then: a slow client that read its rest poked freed memory.
TEST(EventChannel, NothingPokesTheSchedulerAfterTheEnd) {
  Counted counted(1);
  counted.channel.push(token(1));
  counted.channel.finish(final_event());
  (void)counted.take();
  counted.channel.abandon();
  EXPECT_EQ(counted.pokes, 0);
}

TEST(EventChannel, AbandonTellsTheSchedulerAndSilencesTheReader) {
  Counted counted(4);
  counted.wake_at(1);
  EXPECT_FALSE(counted.channel.abandoned().load());
  counted.channel.abandon();
  EXPECT_TRUE(counted.channel.abandoned().load());
  EXPECT_EQ(counted.pokes, 1);
  counted.channel.push(token(1));
  counted.channel.finish(final_event(FinishReason::cancelled));
  EXPECT_EQ(counted.wakes, 0);
}

TEST(EventChannel, RequestThatIsDoneIsNotAbandoned) {
  Counted counted(4);
  counted.channel.finish(final_event());
  counted.channel.abandon();
  EXPECT_FALSE(counted.channel.abandoned().load());
}

TEST(EventChannel, WakesTheReaderForEveryKindOfEvent) {
  Counted counted(4);
  counted.wake_at(1);
  counted.channel.progress({});
  EXPECT_EQ(counted.wakes, 1);
  counted.channel.push(token(1));
  EXPECT_EQ(counted.wakes, 2);
  counted.channel.finish(final_event());
  EXPECT_EQ(counted.wakes, 3);
}

TEST(EventChannel, WakesOnceSoManyTokensWait) {
  Counted counted(8);
  counted.wake_at(3);
  for (int i = 0; i < 2; ++i) counted.channel.push(token(i));
  EXPECT_EQ(counted.wakes, 0);
  counted.channel.push(token(2));
  EXPECT_EQ(counted.wakes, 1);
  (void)counted.take();
  counted.channel.push(token(3));
  EXPECT_EQ(counted.wakes, 1);
  counted.channel.finish(final_event());  // The end is told at once.
  EXPECT_EQ(counted.wakes, 2);
}

TEST(EventChannel, FullChannelHasWokenTheReaderWhateverItAskedFor) {
  for (std::size_t limit : {1, 2, 3, 8}) {
    Counted counted(limit);
    counted.wake_at(1000);
    while (counted.channel.has_room()) counted.channel.push(token(1));
    EXPECT_GE(counted.wakes, 1) << limit;
  }
  Counted none(4);
  none.wake_at(0);
  none.channel.push(token(1));
  EXPECT_EQ(none.wakes, 1);
}

TEST(EventChannel, EventsFromBeforeTheWakeWasSetAreThere) {
  Counted counted(4);
  counted.channel.push(token(1));
  counted.wake_at(1);
  EXPECT_EQ(counted.wakes, 0);
  EXPECT_EQ(ids(counted.take()), std::vector<std::int32_t>{1});
}

TEST(EventChannelDeathTest, BrokenPromisesEndTheProcess) {
  EXPECT_DEATH(EventChannel(0, [] {}), "a channel that holds nothing");
  Counted full(1);
  full.channel.push(token(1));
  EXPECT_DEATH(full.channel.push(token(2)), "an event for a channel without room");
  Counted done(2);
  done.channel.finish(final_event());
  EXPECT_DEATH(done.channel.push(token(1)), "an event after the final one");
  EXPECT_DEATH(done.channel.progress({}), "an event after the final one");
  EXPECT_DEATH(done.channel.finish(final_event()), "a second final event");
}

// What a thread waits on until another one rings.
class Bell {
 public:
  void ring() {
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    changed_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

// Neither side spins: a lost wake or poke would leave this test waiting for ever.
void stream(std::size_t limit, std::size_t wake_at, std::int32_t n) {
  Bell scheduler, reader;
  EventChannel channel(limit, [&] { scheduler.ring(); });
  channel.wake_with([&] { reader.ring(); }, wake_at);
  std::thread writer([&] {
    for (std::int32_t i = 0; i < n; ++i) {
      while (!channel.has_room()) scheduler.wait();
      channel.push(token(i));
    }
    channel.finish(final_event());
  });
  EventChannel::Taken taken;
  std::int32_t next = 0;
  int finals = 0;
  while (finals == 0) {
    reader.wait();
    channel.take(taken);
    for (std::int32_t id : ids(taken)) EXPECT_EQ(id, next++);
    finals += taken.final.has_value();
  }
  writer.join();
  EXPECT_EQ(next, n);
}

TEST(EventChannel, StreamsBetweenThreadsWithoutLossOrStandstill) {
  stream(1, 1, 3000);
  stream(2, 1, 3000);
  stream(8, 64, 3000);
  stream(256, 64, 3000);
}

TEST(EventChannel, AbandonReachesAWriterThatWaitsForRoom) {
  for (int i = 0; i < 200; ++i) {
    Bell scheduler;
    EventChannel channel(1, [&] { scheduler.ring(); });
    std::thread writer([&] {
      while (!channel.abandoned().load(std::memory_order_acquire)) {
        if (channel.has_room()) {
          channel.push(token(1));
        } else {
          scheduler.wait();
        }
      }
      channel.finish(final_event(FinishReason::cancelled));
    });
    EventChannel::Taken taken;
    channel.take(taken);
    channel.abandon();
    writer.join();
    channel.take(taken);
    EXPECT_EQ(taken.final->reason, FinishReason::cancelled);
  }
}

// The scheduler's side ends, with everything it owned, as soon as finish() has returned.
TEST(EventChannel, ReaderOutlivesTheScheduler) {
  for (int i = 0; i < 200; ++i) {
    auto owner = std::make_unique<std::atomic<int>>(0);
    const auto channel = std::make_shared<EventChannel>(1, [raw = owner.get()] { ++*raw; });
    channel->push(token(1));
    std::thread scheduler([&] {
      channel->finish(final_event());
      owner.reset();
    });
    EventChannel::Taken taken;
    for (bool done = false; !done;) {
      channel->take(taken);
      done = taken.final.has_value();
    }
    channel->abandon();
    scheduler.join();
  }
}

}  // namespace
}  // namespace fermata::scheduler
