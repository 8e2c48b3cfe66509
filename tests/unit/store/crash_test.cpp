// Random histories against a model of the store: whatever is answered is exactly what was put, or a
// miss. Processes that end in the midst of a write included.
#include "rig.h"
#include "unit/store/faulty_tier.h"

#include <csignal>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fermata::store {
namespace {

// Few conversations that branch from few beginnings, so that blocks, names and tails collide.
Given draw_page(Random& random) {
  std::vector<TokenId> tokens = tokens_of(static_cast<std::uint64_t>(random.between(0, 1)), 512);
  tokens.resize(static_cast<std::size_t>(random.between(1, 512)));
  if (random.chance(50)) {
    for (const TokenId token : tokens_of(static_cast<std::uint64_t>(random.between(5, 8)),
                                         static_cast<std::size_t>(random.between(1, 300)))) {
      tokens.push_back(token);
    }
  }
  const Kind kind = random.chance(25) ? Kind::snapshot : Kind::blocks;
  Given given = page_of(std::move(tokens), 200, kind);
  given.draft.price_seconds = static_cast<double>(random.between(0, 9));
  if (random.chance(40))
    given.draft.name = std::string(1, static_cast<char>('a' + random.between(0, 3)));
  if (random.chance(10)) given.draft.extra = bytes_of(random(), 30);
  return given;
}

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {
    KeeperOptions options;
    gate_ = std::make_shared<StopWrites>();
    options.gate = gate_;
    if (random_.chance(50)) options.bytes_max = Bytes(random_.between(3'000, 20'000));
    if (random_.chance(50)) options.pages_max = static_cast<std::size_t>(random_.between(1, 8));
    if (random_.chance(30)) options.ttl_seconds = 50;
    rig_ = std::make_unique<KeeperRig>(options);
  }

  void play(int steps) {
    for (int i = 0; i < steps && rig_->keeper != nullptr; ++i) {
      rig_->now += random_.between(0, 5);
      step();
      check_budgets();
    }
  }

 private:
  void step() {
    switch (random_.between(0, 9)) {
      case 0:
      case 1:
      case 2:
        return save();
      case 3:
      case 4:
      case 5:
        return look_up();
      case 6:
        return with_a_page();
      case 7:
        return crash();
      case 8:
        return rig_->open();
      default:
        (void)rig_->keeper->gc();
        return;
    }
  }

  void save() {
    const Given given = draw_page(random_);
    const Outcome outcome = rig_->save(given);
    RC_ASSERT(outcome == Outcome::done || outcome == Outcome::full);
  }

  void look_up() {
    const Given given = draw_page(random_);
    const auto match = rig_->find(given.draft.tokens, given.draft.kind);
    if (!match) return;
    Loaded loaded;
    RC_ASSERT(rig_->keeper->load(match->page, {}, match->blocks, loaded) == Outcome::done);
    RC_ASSERT(match->tokens <= Tokens(static_cast<std::int64_t>(given.draft.tokens.size())));
    for (std::size_t i = 0; i < static_cast<std::size_t>(match->tokens.value); ++i) {
      RC_ASSERT(loaded.tokens[i] == given.draft.tokens[i]);
    }
    // Its own bytes are a function of its own tokens.
    const Given right = page_of(loaded.tokens, 200, given.draft.kind);
    RC_ASSERT(loaded.blocks.size() == match->blocks);
    for (std::size_t i = 0; i < loaded.blocks.size(); ++i) {
      RC_ASSERT(std::equal(loaded.blocks[i].begin(), loaded.blocks[i].end(), right.bytes[i].begin(),
                           right.bytes[i].end()));
    }
  }

  void with_a_page() {
    const std::vector<Page> pages = rig_->keeper->list(std::nullopt, {});
    if (pages.empty()) return;
    const Page chosen = pages[static_cast<std::size_t>(
        random_.between(0, static_cast<std::int64_t>(pages.size()) - 1))];
    Page page;
    switch (random_.between(0, 3)) {
      case 0:
        RC_ASSERT(rig_->keeper->erase(chosen.id) == Outcome::done);
        break;
      case 1: {
        const Outcome outcome = rig_->keeper->pin(chosen.id, random_.chance(30), page);
        RC_ASSERT(outcome == Outcome::done || outcome == Outcome::full);
        break;
      }
      case 2: {
        const Outcome outcome = rig_->keeper->rename(chosen.id, "r", page);
        RC_ASSERT(outcome == Outcome::done || outcome == Outcome::taken ||
                  outcome == Outcome::full);
        break;
      }
      default: {
        const Outcome outcome = rig_->keeper->fork(chosen.id, "f", page);
        RC_ASSERT(outcome == Outcome::done || outcome == Outcome::taken ||
                  outcome == Outcome::full);
      }
    }
  }

  // The process ends in the midst of some change, and another one opens the folder.
  void crash() {
    gate_->allow(random_.between(0, 25));
    const Given given = draw_page(random_);
    Page page;
    const Outcome outcome = rig_->save(given, &page);
    const bool stopped = gate_->stopped();
    gate_->allow(0);
    rig_->keeper.reset();
    gate_->allow(StopWrites::never);
    rig_->open();
    // What had answered `done` is there, budgets apart.
    if (outcome == Outcome::done && !stopped) RC_ASSERT(rig_->keeper->find(page.id) || expires());
  }

  bool expires() const {
    return rig_->options.ttl_seconds || rig_->options.bytes_max || rig_->options.pages_max < 10;
  }

  void check_budgets() {
    const StoreStats& stats = rig_->keeper->stats();
    if (rig_->options.bytes_max && stats.pinned.value() == 0) {
      RC_ASSERT(stats.bytes.value() <= rig_->options.bytes_max->value);
    }
    RC_ASSERT(stats.pages.value() <= static_cast<std::int64_t>(rig_->options.pages_max));
  }

  Random random_;
  std::shared_ptr<StopWrites> gate_;
  std::unique_ptr<KeeperRig> rig_;
};

RC_GTEST_PROP(History, AnswersExactlyWhatWasPutOrAMiss, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  RC_LOG() << "seed " << seed;
  History(seed).play(60);
}

// A save is stopped at each of its changes; the folder is opened again and holds the old page or
// the new one, whole.
TEST(Crash, AtEveryWriteOfASave) {
  const std::vector<TokenId> tokens = tokens_of(1, 700);
  const Given older = named(page_of({tokens.begin(), tokens.begin() + 300}), "x");
  const Given newer = named(page_of(tokens), "x");
  int finished = 0;
  for (std::int64_t after = 0; finished == 0; ++after) {
    ASSERT_LT(after, 100);
    SCOPED_TRACE(after);
    KeeperOptions options;
    const auto gate = std::make_shared<StopWrites>();
    options.gate = gate;
    KeeperRig rig(options);
    ASSERT_EQ(rig.save(older), Outcome::done);
    gate->allow(after);
    const Outcome outcome = rig.save(newer);
    finished = gate->stopped() ? 0 : 1;
    gate->allow(0);
    rig.keeper.reset();
    gate->allow(StopWrites::never);
    rig.open();
    EXPECT_TRUE(rig.keeper->opened().unclean);
    const auto page = rig.keeper->find({}, "x");
    ASSERT_TRUE(page);
    const bool is_new = page->tokens == Tokens(700);
    EXPECT_TRUE(is_new || page->tokens == Tokens(300));
    EXPECT_TRUE(is_new || outcome != Outcome::done);
    EXPECT_EQ(rig.check(is_new ? newer : older), Outcome::done);
    rig.keeper->gc();
    EXPECT_EQ(rig.folder.files("pages").size(), 1U);
    EXPECT_EQ(rig.folder.files("blocks").size(), is_new ? 3U : 2U);
    EXPECT_EQ(rig.check(is_new ? newer : older), Outcome::done);
  }
}

// Says so before each change of a file, so that the parent can kill it there.
class Telling final : public FileGate {
 public:
  explicit Telling(int pipe) : pipe_(pipe) {}
  int ask(FileOp, std::size_t&) override {
    const char one = 1;
    return ::write(pipe_, &one, 1) == 1 ? 0 : EIO;
  }

 private:
  const int pipe_;
};

[[noreturn]] void write_for_ever(const std::string& folder, int pipe, std::uint64_t seed) {
  const SteadyClock clock;
  KeeperOptions options;
  options.folder = folder;
  options.gate = std::make_shared<Telling>(pipe);
  options.pages_max = 6;
  auto keeper = Keeper::open(std::move(options), clock);
  Random random(seed);
  while (keeper.ok()) {
    const Given given = draw_page(random);
    const std::vector<BlockBytes> blocks = given.blocks();
    Page page;
    (void)(*keeper)->save(given.draft, blocks, page);
  }
  _exit(1);
}

TEST(Crash, KilledWriters) {
  KeeperRig rig;
  Random random(7);
  for (int round = 0; round < 40; ++round) {
    rig.keeper.reset();
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const std::uint64_t seed = random();
    const pid_t child = fork();
    if (child == 0) {
      ::close(ends[0]);
      write_for_ever(rig.folder.path(), ends[1], seed);
    }
    ::close(ends[1]);
    for (std::int64_t left = random.between(1, 150); left > 0; --left) {
      char one = 0;
      ASSERT_EQ(::read(ends[0], &one, 1), 1);
    }
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ::close(ends[0]);
    rig.open();
    for (const Page& page : rig.keeper->list(std::nullopt, {})) {
      Loaded loaded;
      ASSERT_EQ(rig.keeper->load(page.id, {}, 100, loaded), Outcome::done);
      expect_its_own_bytes(loaded, page.kind, 200);
    }
    rig.keeper->gc();
    EXPECT_EQ(static_cast<std::int64_t>(rig.folder.files("blocks").size()),
              rig.keeper->stats().blocks.value());
  }
}

// A medium that loses, changes and refuses: what is answered is right all the same.
TEST(Faults, AFaultyTierCostsOnlyMisses) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    KeeperOptions options;
    SteadyClock clock;
    options.wrap_tier = [&](std::unique_ptr<Tier> inner) -> std::unique_ptr<Tier> {
      const FaultOdds odds = {10, 5, 10, 10, 10, 0};
      return std::make_unique<FaultyTier>(clock, std::move(inner), seed, odds);
    };
    KeeperRig rig(options);
    Random random(seed);
    std::uint64_t good = 0;
    for (int i = 0; i < 60; ++i) {
      const Given given = draw_page(random);
      const Outcome saved = rig.save(given);
      EXPECT_TRUE(saved == Outcome::done || saved == Outcome::full || saved == Outcome::failed);
      const Outcome loaded = rig.check(given);
      EXPECT_NE(loaded, Outcome::stopping);
      good += loaded == Outcome::done ? 1 : 0;
    }
    EXPECT_GT(good, 0U);
    EXPECT_GT(rig.keeper->stats().loads[Outcome::damaged], 0U);
  }
}

}  // namespace
}  // namespace fermata::store
