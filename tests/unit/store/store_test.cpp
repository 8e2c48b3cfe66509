// The front for a thread that must not wait: everything handed in is answered once.
#include "store/store.h"

#include "rig.h"
#include "unit/store/faulty_tier.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace fermata::store {
namespace {

// Stops whoever comes until it is opened.
class Barrier {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

struct StoreRig {
  TestFolder folder;
  SteadyClock clock;
  StoreOptions options;
  std::mutex mutex;
  std::condition_variable woken;
  int wakes = 0;
  std::unique_ptr<Store> store;

  void open() {
    store.reset();
    options.keeper.folder = folder.path();
    options.wake = [this] {
      const std::lock_guard lock(mutex);
      ++wakes;
      woken.notify_all();
    };
    auto opened = Store::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error();
    store = std::move(*opened);
  }
  // Waits for so many completions, by ticket.
  std::map<std::uint64_t, Completion> reap(std::size_t n) {
    std::vector<Completion> all;
    while (all.size() < n) {
      {
        std::unique_lock lock(mutex);
        woken.wait(lock, [this] { return wakes > 0; });
        wakes = 0;
      }
      store->reap(all);
    }
    std::map<std::uint64_t, Completion> out;
    for (Completion& completion : all) {
      const std::uint64_t ticket = completion.ticket.value;
      EXPECT_TRUE(out.emplace(ticket, std::move(completion)).second);
    }
    return out;
  }
  Submit save(std::uint64_t ticket, const Given& given) {
    return store->save(Ticket(ticket), given.draft, given.blocks());
  }
};

TEST(Store, SavesFindsAndLoads) {
  StoreRig rig;
  rig.open();
  const Given given = named(page_of(1, 600), "chat");
  ASSERT_EQ(rig.save(1, given), Submit::accepted);
  auto done = rig.reap(1);
  ASSERT_EQ(done.at(1).outcome, Outcome::done);
  EXPECT_EQ(done.at(1).given.size(), 3U);
  const PageId id = done.at(1).page.id;
  const auto match = rig.store->find({}, {}, Kind::blocks, given.draft.tokens);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->page, id);

  std::vector<ByteBuffer> buffers(1);
  ASSERT_EQ(rig.store->load(Ticket(2), id, {}, 3, std::move(buffers)), Submit::accepted);
  ASSERT_EQ(rig.store->list(Ticket(3), Owner{}, "ch"), Submit::accepted);
  done = rig.reap(2);
  ASSERT_EQ(done.at(2).outcome, Outcome::done);
  EXPECT_EQ(done.at(2).tokens, given.draft.tokens);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::equal(done.at(2).blocks[i].begin(), done.at(2).blocks[i].end(),
                           given.bytes[i].begin(), given.bytes[i].end()));
  }
  EXPECT_EQ(done.at(3).pages.size(), 1U);

  ASSERT_EQ(rig.store->pin(Ticket(4), id, true), Submit::accepted);
  ASSERT_EQ(rig.store->rename(Ticket(5), id, "other"), Submit::accepted);
  ASSERT_EQ(rig.store->fork(Ticket(6), id, "copy"), Submit::accepted);
  ASSERT_EQ(rig.store->erase(Ticket(7), id), Submit::accepted);
  ASSERT_EQ(rig.store->erase(Ticket(8), id), Submit::accepted);
  done = rig.reap(5);
  EXPECT_TRUE(done.at(4).page.pinned);
  EXPECT_EQ(done.at(5).page.name, "other");
  EXPECT_EQ(done.at(6).page.name, "copy");
  EXPECT_EQ(done.at(7).outcome, Outcome::done);
  EXPECT_EQ(done.at(8).outcome, Outcome::missing);
  EXPECT_EQ(rig.store->in_flight(), 0U);
  EXPECT_TRUE(rig.store->find({}, "copy"));
}

TEST(Store, LimitsWhatIsUnderWayAndNeverBlocks) {
  StoreRig rig;
  Barrier barrier;
  rig.options.in_flight_max = 3;
  rig.options.bytes_in_flight_max = Bytes(1200);
  rig.options.keeper.wrap_tier = [&](std::unique_ptr<Tier> inner) -> std::unique_ptr<Tier> {
    return std::make_unique<FaultyTier>(rig.clock, std::move(inner), 1,
                                        FaultOdds{0, 0, 0, 0, 0, 100}, [&] { barrier.pass(); });
  };
  rig.open();
  const Given given = page_of(1, 200), other = page_of(2, 200), third = page_of(3, 200);
  ASSERT_EQ(rig.save(1, given), Submit::accepted);
  ASSERT_EQ(rig.save(2, other), Submit::accepted);
  EXPECT_EQ(rig.save(3, third), Submit::busy);  // Too many bytes.
  ASSERT_EQ(rig.store->list(Ticket(4), std::nullopt), Submit::accepted);
  EXPECT_EQ(rig.store->list(Ticket(5), std::nullopt), Submit::busy);  // Too many operations.
  EXPECT_FALSE(rig.store->find({}, {}, Kind::blocks, given.draft.tokens));
  barrier.open();
  EXPECT_EQ(rig.reap(3).size(), 3U);
  EXPECT_EQ(rig.save(6, third), Submit::accepted);
  EXPECT_EQ(rig.reap(1).at(6).outcome, Outcome::done);
}

// K3: what a stop could not write in its time is told, and nothing is half there.
TEST(Store, ClosesWithinItsTimeAndTells) {
  StoreRig rig;
  Barrier barrier;
  rig.options.keeper.wrap_tier = [&](std::unique_ptr<Tier> inner) -> std::unique_ptr<Tier> {
    return std::make_unique<FaultyTier>(rig.clock, std::move(inner), 1,
                                        FaultOdds{0, 0, 0, 0, 0, 100}, [&] { barrier.pass(); });
  };
  rig.open();
  std::vector<Given> pages;
  for (std::uint64_t i = 0; i < 4; ++i) pages.push_back(page_of(i, 600));
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(rig.save(i, pages[i]), Submit::accepted);
  barrier.wait_for_one();
  std::thread opener([&] {
    // Only when it closes. What is accepted before waits behind the saves.
    std::uint64_t ticket = 100;
    while (rig.store->erase(Ticket(ticket), PageId{}) != Submit::stopping) ++ticket;
    barrier.open();
  });
  const CloseReport report = rig.store->close(Micros(0));
  opener.join();
  EXPECT_EQ(report.saved, 0U);
  EXPECT_EQ(report.not_saved, 4U);
  EXPECT_EQ(report.bytes_not_saved, Bytes(6000));
  std::vector<Completion> all;
  rig.store->reap(all);
  EXPECT_GE(all.size(), 4U);
  for (const Completion& completion : all) EXPECT_EQ(completion.outcome, Outcome::stopping);
  EXPECT_EQ(rig.store->in_flight(), 0U);
  EXPECT_EQ(rig.save(9, pages[0]), Submit::stopping);
  rig.options.keeper.wrap_tier = nullptr;
  rig.open();
  EXPECT_FALSE(rig.store->opened().unclean);
  EXPECT_EQ(rig.store->opened().pages, 0U);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(rig.save(i, pages[i]), Submit::accepted);
  EXPECT_EQ(rig.store->close(Micros(60'000'000)).not_saved, 0U);
  rig.reap(4);
  rig.open();
  EXPECT_EQ(rig.store->opened().pages, 4U);
}

TEST(Store, AFolderInUseIsAStartError) {
  StoreRig rig;
  rig.open();
  auto second = Store::open(rig.options);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().find("stop it"), std::string::npos);
}

TEST(Stats, AreWrittenByTier) {
  Exposition out;
  const TierStats tier;
  write(out, tier, "disk");
  const StoreStats stats;
  write(out, stats);
  const std::string text = out.text();
  EXPECT_NE(text.find("fermata_store_tier_gets_total{tier=\"disk\",outcome=\"missing\"} 0"),
            std::string::npos);
  EXPECT_NE(text.find("fermata_store_evictions_total{reason=\"age\"} 0"), std::string::npos);
}

}  // namespace
}  // namespace fermata::store
