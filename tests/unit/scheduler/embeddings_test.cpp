// Texts wait in one queue, are computed in parts between steps, and leave nothing behind.
#include "scheduler/embeddings.h"

#include "engine/fake/fake_embedder.h"
#include "scheduler/status.h"

#include <string>

#include <gtest/gtest.h>

namespace fermata::scheduler {
namespace {

class Texts : public ::testing::Test {
 protected:
  std::shared_ptr<EmbedReply> push(const std::vector<std::size_t>& lengths,
                                   PushOutcome expected = PushOutcome::pushed) {
    EmbedJob job;
    for (const std::size_t length : lengths) job.texts.emplace_back(length, TokenId{7});
    job.reply = std::make_shared<EmbedReply>();
    auto reply = job.reply;
    EXPECT_EQ(embeddings_.push(job), expected);
    return reply;
  }
  void work_off() {
    while (embeddings_.work()) {
    }
  }

  engine::fake::FakeEmbedder embedder_{
      {}, engine::Pooling::mean, {.n_batch = Tokens(16), .n_ubatch = Tokens(16)}};
  SchedulerStats stats_;
  std::atomic<std::int64_t> waiting_{0};
  Embeddings embeddings_{&embedder_, 3, waiting_, stats_};
};

TEST_F(Texts, AreComputedTogetherAsFarAsTheyFit) {
  const auto reply = push({5, 5, 5, 5, 16, 1, 1, 1, 1, 1});
  const auto other = push({3});
  EXPECT_EQ(waiting_, 2);
  EXPECT_TRUE(embeddings_.work());
  EXPECT_EQ(embedder_.calls(), 1);
  EXPECT_FALSE(reply->take());
  work_off();
  EXPECT_EQ(embedder_.calls(), 6) << "5 5 5, 5, 16, four, one; and the other job's";
  const auto result = reply->take();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end, EmbedEnd::done);
  ASSERT_EQ(result->vectors.size(), 10U);
  EXPECT_EQ(result->vectors[0], result->vectors[3]);
  EXPECT_NE(result->vectors[0], result->vectors[4]);
  EXPECT_EQ(other->take()->vectors.size(), 1U);
  EXPECT_EQ(waiting_, 0);
  EXPECT_EQ(stats_.embedded_tokens.value(), 44U);
  EXPECT_EQ(stats_.requests_finished.value(), 2U) << "as many as were accepted";
  EXPECT_FALSE(embeddings_.work());
}

TEST_F(Texts, OfAClientThatLeftAreNotComputed) {
  const auto gone = push({16, 16, 16});
  const auto stays = push({2});
  EXPECT_TRUE(embeddings_.work());
  gone->abandon();
  work_off();
  EXPECT_EQ(embedder_.calls(), 2);
  EXPECT_TRUE(stays->take());
  EXPECT_EQ(waiting_, 0);
}

TEST_F(Texts, MoreThanMayWaitAreRefused) {
  waiting_ = 1;  // A request of another kind.
  push({1});
  push({1});
  push({1}, PushOutcome::full);
  EXPECT_EQ(waiting_, 3);
  work_off();
  EXPECT_EQ(waiting_, 1);
  embeddings_.close();
  push({1}, PushOutcome::closed);
  EXPECT_EQ(waiting_, 1);
}

TEST_F(Texts, AFailureEndsOneJobAndAStopAll) {
  embedder_.fail_next();
  const auto failed = push({4});
  const auto good = push({4});
  work_off();
  EXPECT_EQ(failed->take()->end, EmbedEnd::failed);
  EXPECT_EQ(good->take()->end, EmbedEnd::done);
  const auto late = push({4});
  embeddings_.end_all();
  EXPECT_EQ(late->take()->end, EmbedEnd::stopping);
  EXPECT_EQ(waiting_, 0);
}

}  // namespace
}  // namespace fermata::scheduler
