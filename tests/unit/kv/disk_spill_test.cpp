// Parked sequences in the store: there until they are wanted, and exactly what they were.
#include "kv/disk_spill.h"

#include "engine/fake/fake_engine.h"
#include "unit/kv/computing.h"
#include "unit/store/test_folder.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>

#include <gtest/gtest.h>

namespace fermata::kv {
namespace {

constexpr RequestId one{1}, two{2};
constexpr auto room = Bytes(std::int64_t{1} << 20);

class DiskSpills : public ::testing::Test {
 protected:
  void SetUp() override { open({}); }
  void open(std::optional<Bytes> most) {
    store::StoreOptions options;
    options.keeper.folder = folder_.path();
    options.keeper.bytes_max = most;
    options.wake = [this] {
      const std::lock_guard lock(mutex_);
      ++wakes_;
      woken_.notify_all();
    };
    spill_.reset();
    store_.reset();
    auto opened = store::Store::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error();
    store_ = std::move(*opened);
    spill_ = std::make_unique<DiskSpill>(ArchiveOptions{store_.get(), store::Fingerprint{}},
                                         store::Kind::blocks);
  }

  Image image_of(std::int32_t seat, std::size_t tokens) {
    EXPECT_EQ(pool_.take(Seat(seat), Tokens(0)), Tokens(0));
    compute(engine_, pool_, Seat(seat), std::vector<TokenId>(tokens, TokenId{65 + seat}));
    Image image = pool_.image(Seat(seat), true);
    pool_.release(Seat(seat), false, Micros(1));
    return image;
  }

  // What the spill tells once the store has done so many things more.
  std::vector<Spilled> news(int done = 1) {
    expected_ += done;
    {
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [this] { return wakes_ >= expected_; });
    }
    std::vector<store::Completion> completions;
    store_->reap(completions);
    for (store::Completion& completion : completions) EXPECT_TRUE(spill_->take(completion));
    std::vector<Spilled> out;
    spill_->reap(out);
    return out;
  }

  store::TestFolder folder_;
  engine::fake::FakeEngine engine_{{},
                                   {.n_ctx = Tokens(4096), .n_parallel = 3},
                                   {.n_batch = Tokens(1024), .n_ubatch = Tokens(1024)}};
  Pool pool_{engine_, {.budgets = {.preempt = Bytes(1), .passing = room}}};
  std::mutex mutex_;
  std::condition_variable woken_;
  int wakes_ = 0, expected_ = 0;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<DiskSpill> spill_;
};

TEST_F(DiskSpills, BringBackExactlyWhatWentOut) {
  const Image image = image_of(0, 600);
  ASSERT_EQ(image.pieces.size(), 3U);
  ASSERT_TRUE(spill_->put(one, image, {}, 1.0));
  auto told = news();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].what, Spilled::What::out);
  EXPECT_EQ(pool_.vault().passing(), image.size()) << "the writer's share is given back";
  for (int round = 0; round < 2; ++round) {  // It stays there.
    ASSERT_TRUE(spill_->fetch(one));
    ASSERT_TRUE(spill_->fetch(one)) << "once more, in the next tick: it is on its way";
    EXPECT_EQ(store_->in_flight(), 1U);
    told = news();
    ASSERT_EQ(told.size(), 1U);
    ASSERT_EQ(told[0].what, Spilled::What::back);
    ASSERT_EQ(told[0].pieces.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(std::ranges::equal(told[0].pieces[i], image.pieces[i].bytes()));
    }
  }
}

TEST_F(DiskSpills, WhoIsForgottenHearsNothing) {
  const Image first = image_of(0, 300), second = image_of(1, 400);
  ASSERT_TRUE(spill_->put(one, first, {}, 1.0));
  spill_->forget(one);
  // Parked again, with more: the first save is not taken for the second.
  ASSERT_TRUE(spill_->put(one, second, {}, 1.0));
  auto told = news(2);
  ASSERT_EQ(told.size(), 1U);
  ASSERT_TRUE(spill_->fetch(one));
  told = news(2);  // The first page goes, too.
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(std::ranges::equal(told[0].pieces[0], second.pieces[0].bytes()));
  ASSERT_TRUE(spill_->fetch(one));
  spill_->forget(one);
  EXPECT_TRUE(news().empty());
}

TEST_F(DiskSpills, PagesStayWhileSomebodyWaitsForThem) {
  const Image first = image_of(0, 300), second = image_of(1, 300);
  open(first.size() + Bytes(4000));
  expected_ = wakes_;
  ASSERT_TRUE(spill_->put(one, first, {}, 1.0));
  EXPECT_EQ(news().front().what, Spilled::What::out);
  ASSERT_TRUE(spill_->put(two, second, {}, 100.0));
  EXPECT_EQ(news().front().what, Spilled::What::lost) << "the first is held";
  spill_->forget(one);
  ASSERT_TRUE(spill_->put(two, second, {}, 100.0));
  EXPECT_EQ(news().front().what, Spilled::What::out);
}

// The folder grew with each park, and a conversation that was deleted was still there.
TEST_F(DiskSpills, NothingStaysOfARequestThatHasEnded) {
  const auto pages = [&] { return store_->stats().pages.value(); };
  ASSERT_TRUE(spill_->put(one, image_of(0, 300), {}, 1.0));
  news();
  EXPECT_EQ(pages(), 1);
  spill_->forget(one);  // It runs again: a process that ended now would find it.
  EXPECT_EQ(pages(), 1);
  ASSERT_TRUE(spill_->put(one, image_of(1, 600), {}, 1.0));
  news();
  news();
  EXPECT_EQ(pages(), 1) << "the first has gone with the second";
  spill_->end(one, false);
  news();
  EXPECT_EQ(pages(), 0);

  // One that ends while it is being written.
  ASSERT_TRUE(spill_->put(one, image_of(2, 300), {}, 1.0));
  spill_->end(one, false);
  news();
  news();
  EXPECT_EQ(pages(), 0);
}

TEST_F(DiskSpills, WhatSomebodyMadeHisOwnStays) {
  ASSERT_TRUE(spill_->put(one, image_of(0, 300), {}, 1.0));
  ASSERT_TRUE(spill_->put(two, image_of(1, 300), {}, 1.0));
  news(2);
  const auto match =
      store_->find({}, {}, store::Kind::blocks, std::vector<TokenId>(300, TokenId{65}));
  ASSERT_TRUE(match);
  ASSERT_EQ(store_->rename(store::Ticket(1), match->page, "mine"), store::Submit::accepted);
  expected_ += 1;
  {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [this] { return wakes_ >= expected_; });
  }
  std::vector<store::Completion> renamed;
  store_->reap(renamed);
  spill_->end(one, false);
  spill_->end(two, true);  // The server stops: who asks again goes on from it.
  news();
  EXPECT_EQ(store_->stats().pages.value(), 2);
}

TEST_F(DiskSpills, OfAnotherKindOrDamagedAreLost) {
  const Image image = image_of(0, 300);
  ASSERT_TRUE(spill_->put(one, image, {}, 1.0));
  ASSERT_TRUE(spill_->put(two, image, {}, 1.0));
  EXPECT_EQ(news(2).size(), 2U);
  for (const auto& file : folder_.files("blocks")) std::filesystem::remove(file);
  ASSERT_TRUE(spill_->fetch(one));
  EXPECT_EQ(news().front().what, Spilled::What::lost);
  store::Fingerprint other{};
  other.fill(std::byte{1});
  spill_->change_fingerprint(other, store::Kind::blocks);
  ASSERT_TRUE(spill_->fetch(two));
  EXPECT_EQ(news(0).front().what, Spilled::What::lost);
}

TEST_F(DiskSpills, WhatWasShiftedIsNobodyElses) {
  Image image = image_of(0, 300);
  image.unshifted = Tokens(10);
  EXPECT_FALSE(spill_->put(one, image, {}, 1.0));
}

}  // namespace
}  // namespace fermata::kv
