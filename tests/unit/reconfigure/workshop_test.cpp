// Engines are built and freed on the side, and weights go when no engine is there.
#include "reconfigure/workshop.h"

#include "engine/fake/fake_model.h"

#include <condition_variable>
#include <mutex>

#include <gtest/gtest.h>

namespace fermata::reconfigure {
namespace {

class Workshops : public ::testing::Test {
 protected:
  Built wait() {
    std::unique_lock lock(mutex_);
    rang_.wait(lock, [this] { return is_ready_; });
    is_ready_ = false;
    auto built = workshop_.take();
    EXPECT_TRUE(built.has_value());
    return *built;
  }
  void ring() {
    const std::lock_guard lock(mutex_);
    is_ready_ = true;
    rang_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable rang_;
  bool is_ready_ = false;
  std::unique_ptr<engine::Model> model_ = engine::fake::make_model({});
  ModelWorkshop workshop_{
      *model_, {.engine = {}, .dress = {}, .available_memory = {}, .wake = [this] { ring(); }}};
  const Geometry geometry_{.n_ctx = Tokens(64), .n_parallel = 2};
};

TEST_F(Workshops, BuildOnTheSide) {
  workshop_.begin(geometry_);
  const Built built = wait();
  ASSERT_TRUE(built.ok());
  EXPECT_EQ((*built)->limits().seats, 2);
  EXPECT_FALSE(workshop_.take().has_value()) << "once";
  workshop_.discard(**built);
  workshop_.release_memory(true);
}

TEST_F(Workshops, AFailureIsAnAnswer) {
  workshop_.set_faults(100);
  workshop_.begin(geometry_);
  EXPECT_FALSE(wait().ok());
  EXPECT_FALSE(workshop_.build(geometry_).ok());
  workshop_.set_faults(0);
  EXPECT_TRUE(workshop_.build(geometry_).ok());
}

TEST_F(Workshops, CanBeLeftWhileTheyBuild) { workshop_.begin(geometry_); }

using WorkshopsDeathTest = Workshops;

TEST_F(WorkshopsDeathTest, WeightsStayWhileAnEngineIsThere) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  ASSERT_TRUE(workshop_.build(geometry_).ok());
  EXPECT_DEATH(workshop_.release_memory(true), "an engine is there");
}

}  // namespace
}  // namespace fermata::reconfigure
