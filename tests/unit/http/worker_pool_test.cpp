#include "http/worker_pool.h"

#include <future>
#include <memory>

#include <gtest/gtest.h>

namespace fermata::http {
namespace {

// Keeps the only worker busy until it is let go.
class Busy {
 public:
  explicit Busy(WorkerPool& pool) {
    std::promise<void> started;
    EXPECT_TRUE(pool.submit([&started, let_go = let_go_.get_future().share()] {
      started.set_value();
      let_go.wait();
    }));
    started.get_future().wait();
  }
  void let_go() { let_go_.set_value(); }

 private:
  std::promise<void> let_go_;
};

TEST(WorkerPool, RefusesWhatItsQueueCannotHold) {
  WorkerPool pool(1, 2);
  Busy busy(pool);
  EXPECT_TRUE(pool.submit([] {}));
  EXPECT_TRUE(pool.submit([] {}));
  EXPECT_FALSE(pool.submit([] {}));
  busy.let_go();
}

TEST(WorkerPool, AWithdrawnTaskIsDestroyedAtOnceAndMakesRoom) {
  WorkerPool pool(1, 1);
  Busy busy(pool);
  auto payload = std::make_shared<int>(7);
  const auto ticket = pool.submit([payload] { *payload = 8; });
  ASSERT_TRUE(ticket);
  EXPECT_EQ(payload.use_count(), 2);
  pool.withdraw(*ticket);
  EXPECT_EQ(payload.use_count(), 1);
  std::promise<void> ran;
  EXPECT_TRUE(pool.submit([&ran] { ran.set_value(); }));
  busy.let_go();
  ran.get_future().wait();
  EXPECT_EQ(*payload, 7);
}

TEST(WorkerPool, CloseDestroysWhatWaitsAndRefusesTheRest) {
  WorkerPool pool(1, 4);
  Busy busy(pool);
  auto payload = std::make_shared<int>(7);
  ASSERT_TRUE(pool.submit([payload] { *payload = 8; }));
  auto closing = std::async(std::launch::async, [&pool] { pool.close(); });
  while (const auto ticket = pool.submit([] {})) pool.withdraw(*ticket);
  busy.let_go();
  closing.wait();
  EXPECT_EQ(payload.use_count(), 1);
  EXPECT_EQ(*payload, 7);
}

}  // namespace
}  // namespace fermata::http
