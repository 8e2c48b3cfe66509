#include "base/bounded_queue.h"

#include <thread>

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(BoundedQueue, NamesItsLimitAndKeepsTheValueItCannotTake) {
  BoundedQueue<std::string> queue(2);
  std::string third = "third";
  EXPECT_EQ(queue.push("first"), PushOutcome::pushed);
  EXPECT_EQ(queue.push("second"), PushOutcome::pushed);
  EXPECT_EQ(queue.push(std::move(third)), PushOutcome::full);
  EXPECT_EQ(third, "third");

  std::vector<std::string> out;
  queue.drain(out);
  EXPECT_EQ(out, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(queue.push(std::move(third)), PushOutcome::pushed);
}

TEST(BoundedQueue, ClosedQueueRefusesAndStillDrains) {
  BoundedQueue<int> queue(2);
  EXPECT_EQ(queue.push(1), PushOutcome::pushed);
  queue.close();
  EXPECT_EQ(queue.push(2), PushOutcome::closed);
  queue.wait();  // Returns at once: closed.
  std::vector<int> out;
  queue.drain(out);
  EXPECT_EQ(out, std::vector<int>{1});
}

TEST(BoundedQueue, EveryValueOfManyWritersArrivesOnce) {
  constexpr int writers = 4;
  constexpr int each = 500;
  BoundedQueue<int> queue(16);
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&queue, w] {
      for (int i = 0; i < each; ++i) {
        int value = w * each + i;
        while (queue.push(std::move(value)) == PushOutcome::full) std::this_thread::yield();
      }
    });
  }
  std::vector<int> seen(writers * each, 0);
  std::vector<int> batch;
  for (int got = 0; got < writers * each;) {
    queue.wait();
    queue.drain(batch);
    for (int value : batch) ++seen[static_cast<std::size_t>(value)];
    got += static_cast<int>(batch.size());
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(seen, std::vector<int>(writers * each, 1));
}

TEST(BoundedQueue, PokeEndsOneWait) {
  BoundedQueue<int> queue(1);
  queue.poke();
  queue.wait();
  std::vector<int> out;
  queue.drain(out);
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace fermata
