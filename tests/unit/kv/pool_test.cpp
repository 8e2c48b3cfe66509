// The pool on the strict fake engine. The engine's own count of cells is the truth that the ledger
// is held against.
#include "kv/pool.h"

#include "engine/fake/fake_engine.h"
#include "unit/kv/computing.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata::kv {
namespace {

using engine::MemoryKind;

struct Rig {
  engine::fake::FakeEngine engine;
  Pool pool;

  explicit Rig(MemoryKind kind = MemoryKind::attention, Layout layout = Layout::pooled,
               std::int64_t cells = 64, std::int64_t chunk = 0)
      : engine(model(kind), {.n_ctx = Tokens(cells), .n_parallel = 4, .layout = layout}, {}),
        pool(engine, {.budgets = {}, .chunk = Tokens(chunk)}) {}

  static engine::fake::FakeModelSpec model(MemoryKind kind) {
    engine::fake::FakeModelSpec spec;
    spec.kind = kind;
    return spec;
  }
  // The engine computes `text` behind what a busy seat holds.
  void compute(Seat seat, const std::string& text) {
    kv::compute(engine, pool, seat, tokens_of(text));
  }
  // A finished request of this text.
  void leave(Seat seat, const std::string& text, Micros when = Micros(1)) {
    ASSERT_EQ(pool.take(seat, Tokens(0)), Tokens(0));
    compute(seat, text);
    pool.release(seat, true, when);
  }
  std::string text(Seat seat) const {
    std::string out;
    for (TokenId token : pool.tokens(seat)) out += static_cast<char>(raw(token));
    return out;
  }
  PrefixMatch match(Seat seat, const std::string& prompt) const {
    return pool.match(seat, tokens_of(prompt));
  }
};

TEST(Pool, BeginsEmpty) {
  const Rig rig;
  EXPECT_EQ(rig.pool.seats(), 4);
  EXPECT_EQ(rig.pool.use(Seat(3)), SeatUse::empty);
  EXPECT_EQ(rig.pool.unpromised(), Tokens(64));
  EXPECT_EQ(rig.pool.outstanding(), Tokens(0));
  EXPECT_EQ(rig.pool.used_by_busy(), Tokens(0));
  EXPECT_EQ(rig.match(Seat(0), "prompt").own, Tokens(0));
}

TEST(PoolMatch, LeavesOneTokenOfThePromptToCompute) {
  Rig rig;
  rig.leave(Seat(0), "hello");
  EXPECT_EQ(rig.match(Seat(0), "hello world").own, Tokens(5));
  EXPECT_EQ(rig.match(Seat(0), "hello").own, Tokens(4));
  EXPECT_EQ(rig.match(Seat(0), "hell").own, Tokens(3));
  EXPECT_EQ(rig.match(Seat(0), "help").own, Tokens(3));
  EXPECT_EQ(rig.match(Seat(0), "h").own, Tokens(0));
  EXPECT_EQ(rig.match(Seat(0), "").own, Tokens(0));
  EXPECT_EQ(rig.match(Seat(0), "yellow").own, Tokens(0));
  EXPECT_EQ(rig.match(Seat(0), "help").shareable, Tokens(3));
  EXPECT_EQ(rig.match(Seat(1), "hello").shareable, Tokens(0));
}

TEST(PoolMatch, BusySeatLendsButIsNotGivenAway) {
  Rig rig;
  rig.pool.take(Seat(0), Tokens(0));
  rig.compute(Seat(0), "hello");
  EXPECT_EQ(rig.match(Seat(0), "hello world").own, Tokens(0));
  EXPECT_EQ(rig.match(Seat(0), "hello world").shareable, Tokens(5));
}

TEST(PoolMatch, SplitLayoutLendsNothing) {
  Rig rig(MemoryKind::attention, Layout::split);
  rig.leave(Seat(0), "hello");
  EXPECT_EQ(rig.match(Seat(0), "hello world").own, Tokens(5));
  EXPECT_EQ(rig.match(Seat(0), "hello world").shareable, Tokens(0));
}

TEST(PoolMatch, MemoryThatCannotBeCutOffersOnlyAllItHolds) {
  for (MemoryKind kind : {MemoryKind::recurrent, MemoryKind::hybrid}) {
    Rig rig(kind);
    rig.leave(Seat(0), "hello");
    EXPECT_EQ(rig.match(Seat(0), "hello world").own, Tokens(5));
    EXPECT_EQ(rig.match(Seat(0), "help me").own, Tokens(0));
    // The whole prompt is there, and its last token must be computed again: not possible.
    EXPECT_EQ(rig.match(Seat(0), "hello").own, Tokens(0));
    EXPECT_EQ(rig.match(Seat(0), "hello world").shareable, Tokens(0));
  }
}

TEST(PoolMatch, SlidingWindowOffersWhatItsWindowStillHolds) {
  Rig rig(MemoryKind::sliding_window);
  const std::string text(30, 'a');  // More than the window of 16.
  rig.leave(Seat(0), text);
  EXPECT_EQ(rig.match(Seat(0), text + "b").own, Tokens(30));
  EXPECT_EQ(rig.match(Seat(0), text.substr(1) + "b").own, Tokens(0));
  rig.leave(Seat(1), "short");
  EXPECT_EQ(rig.match(Seat(1), "shoes").own, Tokens(3));
}

Rig in_chunks_of_four(MemoryKind kind = MemoryKind::attention) {
  return Rig(kind, Layout::split, 256, 4);
}

TEST(PoolChunks, OnlyWholeOnesAreOffered) {
  Rig rig = in_chunks_of_four();
  rig.pool.take(Seat(0), Tokens(0));
  for (const char* piece : {"abcd", "efgh", "ij"}) rig.compute(Seat(0), piece);
  // A reply, of which four rows come in one step by chance.
  for (const char* piece : {"k", "l", "mnop"}) rig.compute(Seat(0), piece);
  rig.pool.release(Seat(0), true, Micros(1));
  EXPECT_EQ(rig.match(Seat(0), "abcdefghijklmnopq").own, Tokens(8));
  EXPECT_EQ(rig.match(Seat(0), "abcdefgh").own, Tokens(4));
  EXPECT_EQ(rig.match(Seat(0), "abcdefxyz").own, Tokens(4));
  EXPECT_EQ(rig.match(Seat(0), "abcx").own, Tokens(0));
  // Cut and gone on from.
  EXPECT_EQ(rig.pool.take(Seat(0), Tokens(4)), Tokens(4));
  rig.compute(Seat(0), "EFGH");
  rig.pool.release(Seat(0), true, Micros(2));
  EXPECT_EQ(rig.match(Seat(0), "abcdEFGHi").own, Tokens(8));
}

TEST(PoolChunks, AreForgottenWithTheCells) {
  Rig rig = in_chunks_of_four();
  rig.leave(Seat(0), "abcd");
  rig.pool.evict(Seat(0));
  rig.pool.take(Seat(0), Tokens(0));
  for (const char* piece : {"ab", "cd"}) rig.compute(Seat(0), piece);
  rig.pool.release(Seat(0), true, Micros(1));
  EXPECT_EQ(rig.match(Seat(0), "abcdefgh").own, Tokens(0));
  rig.leave(Seat(1), "abcd");
  rig.pool.drop_everything();
  EXPECT_EQ(rig.match(Seat(1), "abcdefgh").own, Tokens(0));
}

TEST(PoolChunks, ComeBackWithAnImage) {
  Rig rig = in_chunks_of_four();
  rig.pool.take(Seat(0), Tokens(0));
  for (const char* piece : {"abcd", "efgh", "ij"}) rig.compute(Seat(0), piece);
  Image image = rig.pool.image(Seat(0), true);
  rig.pool.release(Seat(0), false, Micros(1));
  rig.pool.take(Seat(2), Tokens(0));
  ASSERT_EQ(rig.pool.restore(Seat(2), std::move(image)), Tokens(10));
  rig.pool.release(Seat(2), true, Micros(2));
  EXPECT_EQ(rig.match(Seat(2), "abcdefghijkl").own, Tokens(8));
}

TEST(PoolChunks, MemoryThatCannotBeCutOffersThemOnlyWhenThereIsNothingElse) {
  for (MemoryKind kind : {MemoryKind::sliding_window, MemoryKind::recurrent, MemoryKind::hybrid}) {
    Rig rig = in_chunks_of_four(kind);
    rig.leave(Seat(0), "abcd");
    EXPECT_EQ(rig.match(Seat(0), "abcdefgh").own, Tokens(4));
    rig.pool.take(Seat(0), Tokens(4));
    rig.compute(Seat(0), "e");
    rig.pool.release(Seat(0), true, Micros(1));
    EXPECT_EQ(rig.match(Seat(0), "abcdefgh").own, Tokens(0));
  }
}

TEST(PoolTake, KeepsTheBeginningAndDropsTheRest) {
  Rig rig;
  rig.leave(Seat(0), "hello");
  EXPECT_EQ(rig.pool.take(Seat(0), Tokens(3)), Tokens(3));
  EXPECT_EQ(rig.pool.use(Seat(0)), SeatUse::busy);
  EXPECT_EQ(rig.text(Seat(0)), "hel");
  EXPECT_EQ(rig.engine.cells_used(), Tokens(3));
  EXPECT_EQ(rig.pool.used_by_busy(), Tokens(3));
  rig.compute(Seat(0), "p");
  EXPECT_EQ(rig.text(Seat(0)), "help");
}

TEST(PoolTake, AnswersFewerWhenTheMemoryCannotBeCutThere) {
  for (MemoryKind kind : {MemoryKind::recurrent, MemoryKind::hybrid}) {
    Rig rig(kind);
    rig.leave(Seat(0), "hello");
    EXPECT_EQ(rig.pool.take(Seat(0), Tokens(3)), Tokens(0));
    EXPECT_EQ(rig.text(Seat(0)), "");
    EXPECT_EQ(rig.engine.position(Seat(0)), Tokens(0));
    EXPECT_EQ(rig.pool.ledger().length(Seat(0)), Tokens(0));
    EXPECT_EQ(rig.pool.use(Seat(0)), SeatUse::busy);
  }
}

TEST(PoolTake, SharedCellsAreThereOnce) {
  Rig rig;
  rig.leave(Seat(0), "system: one");
  rig.leave(Seat(1), "old");
  EXPECT_EQ(rig.pool.take_shared(Seat(1), Seat(0), Tokens(8)), Tokens(8));
  EXPECT_EQ(rig.text(Seat(1)), "system: ");
  rig.compute(Seat(1), "two");
  EXPECT_EQ(rig.engine.cells_used(), Tokens(11 + 3));
  EXPECT_EQ(rig.pool.ledger().used(), Tokens(11 + 3));
  // The lender goes, what was lent stays.
  rig.pool.evict(Seat(0));
  EXPECT_EQ(rig.engine.cells_used(), Tokens(11));
  EXPECT_EQ(rig.text(Seat(1)), "system: two");
}

TEST(PoolTake, BusySeatsCanLend) {
  Rig rig;
  rig.pool.take(Seat(0), Tokens(0));
  rig.compute(Seat(0), "system: one");
  EXPECT_EQ(rig.pool.take_shared(Seat(2), Seat(0), Tokens(8)), Tokens(8));
  rig.compute(Seat(0), "!");
  EXPECT_EQ(rig.text(Seat(0)), "system: one!");
  EXPECT_EQ(rig.text(Seat(2)), "system: ");
  EXPECT_EQ(rig.pool.used_by_busy(), Tokens(12));
}

TEST(PoolTake, MemoryThatCannotShareSeatsWithoutAPrefix) {
  Rig rig(MemoryKind::attention, Layout::split);
  rig.leave(Seat(0), "system: one");
  EXPECT_EQ(rig.pool.take_shared(Seat(1), Seat(0), Tokens(8)), Tokens(0));
  EXPECT_EQ(rig.pool.use(Seat(1)), SeatUse::busy);
  EXPECT_EQ(rig.text(Seat(1)), "");
  EXPECT_EQ(rig.pool.take_shared(Seat(2), Seat(0), Tokens(0)), Tokens(0));
  EXPECT_EQ(rig.pool.use(Seat(2)), SeatUse::busy);
}

TEST(PoolRelease, KeepsOrDropsAndRemembersWhen) {
  Rig rig;
  rig.leave(Seat(0), "kept", Micros(70));
  EXPECT_EQ(rig.pool.use(Seat(0)), SeatUse::idle);
  EXPECT_EQ(rig.pool.last_used(Seat(0)), Micros(70));
  EXPECT_EQ(rig.text(Seat(0)), "kept");
  EXPECT_EQ(rig.pool.used_by_busy(), Tokens(0));
  EXPECT_EQ(rig.pool.unpromised(), Tokens(60));

  rig.pool.take(Seat(1), Tokens(0));
  rig.compute(Seat(1), "dropped");
  rig.pool.release(Seat(1), false, Micros(71));
  EXPECT_EQ(rig.pool.use(Seat(1)), SeatUse::empty);
  EXPECT_EQ(rig.engine.cells_used(), Tokens(4));

  // Nothing was computed: nothing to keep.
  rig.pool.take(Seat(2), Tokens(0));
  rig.pool.release(Seat(2), true, Micros(72));
  EXPECT_EQ(rig.pool.use(Seat(2)), SeatUse::empty);
}

TEST(PoolEvict, DropsAnIdleSeatAndLeavesAnEmptyOne) {
  Rig rig;
  rig.leave(Seat(0), "idle");
  rig.pool.evict(Seat(0));
  rig.pool.evict(Seat(0));
  rig.pool.evict(Seat(1));
  EXPECT_EQ(rig.pool.use(Seat(0)), SeatUse::empty);
  EXPECT_EQ(rig.pool.use(Seat(1)), SeatUse::empty);
  EXPECT_EQ(rig.engine.cells_used(), Tokens(0));
}

TEST(PoolDropEverything, LeavesBusySeatsBusyAndEmpty) {
  Rig rig;
  rig.leave(Seat(0), "idle");
  rig.pool.take_shared(Seat(1), Seat(0), Tokens(3));
  rig.compute(Seat(1), "busy");
  {
    const Reservation reservation = rig.pool.reserve(Seat(1), Tokens(20));
    rig.pool.drop_everything();
    EXPECT_EQ(rig.pool.use(Seat(0)), SeatUse::empty);
    EXPECT_EQ(rig.pool.use(Seat(1)), SeatUse::busy);
    EXPECT_EQ(rig.pool.use(Seat(2)), SeatUse::empty);
    EXPECT_EQ(rig.engine.cells_used(), Tokens(0));
    EXPECT_EQ(rig.pool.ledger().used(), Tokens(0));
    EXPECT_EQ(rig.pool.outstanding(), Tokens(20));
  }
  rig.compute(Seat(1), "anew");
  rig.pool.release(Seat(1), true, Micros(5));
  EXPECT_EQ(rig.text(Seat(1)), "anew");
  EXPECT_EQ(rig.pool.unpromised(), Tokens(60));
}

TEST(Reservation, PromisesWhatIsNotHeldYet) {
  Rig rig;
  rig.pool.take(Seat(0), Tokens(0));
  const Reservation reservation = rig.pool.reserve(Seat(0), Tokens(10));
  EXPECT_EQ(rig.pool.outstanding(), Tokens(10));
  EXPECT_EQ(rig.pool.unpromised(), Tokens(54));
  rig.compute(Seat(0), "four");
  EXPECT_EQ(rig.pool.outstanding(), Tokens(6));
  EXPECT_EQ(rig.pool.unpromised(), Tokens(54));
  // Beyond its promise it takes what nobody was promised.
  rig.compute(Seat(0), "and eight");
  EXPECT_EQ(rig.pool.outstanding(), Tokens(0));
  EXPECT_EQ(rig.pool.unpromised(), Tokens(51));
}

TEST(Reservation, CountsSharedCellsAsHeld) {
  Rig rig;
  rig.leave(Seat(0), "system: one");
  rig.pool.take_shared(Seat(1), Seat(0), Tokens(8));
  const Reservation reservation = rig.pool.reserve(Seat(1), Tokens(20));
  EXPECT_EQ(rig.pool.outstanding(), Tokens(12));
  EXPECT_EQ(rig.pool.unpromised(), Tokens(64 - 11 - 12));
}

TEST(Reservation, EndsWithItsObject) {
  Rig rig;
  rig.pool.take(Seat(0), Tokens(0));
  { const Reservation reservation = rig.pool.reserve(Seat(0), Tokens(10)); }
  EXPECT_EQ(rig.pool.outstanding(), Tokens(0));
  const Reservation again = rig.pool.reserve(Seat(0), Tokens(5));
  EXPECT_EQ(rig.pool.outstanding(), Tokens(5));
}

TEST(Reservation, MovesWithoutEnding) {
  Rig rig;
  rig.pool.take(Seat(0), Tokens(0));
  rig.pool.take(Seat(1), Tokens(0));
  Reservation first = rig.pool.reserve(Seat(0), Tokens(10));
  {
    Reservation moved = std::move(first);
    EXPECT_EQ(rig.pool.outstanding(), Tokens(10));
    Reservation& same = moved;
    moved = std::move(same);
    EXPECT_EQ(rig.pool.outstanding(), Tokens(10));
    first = std::move(moved);
  }
  EXPECT_EQ(rig.pool.outstanding(), Tokens(10));
  // Assigning ends what was held before.
  first = rig.pool.reserve(Seat(1), Tokens(3));
  EXPECT_EQ(rig.pool.outstanding(), Tokens(3));
  first = Reservation();
  EXPECT_EQ(rig.pool.outstanding(), Tokens(0));
}

TEST(Reservation, PromisesNothingWhereTokensTakeNoCells) {
  Rig rig(MemoryKind::recurrent);
  rig.pool.take(Seat(0), Tokens(0));
  const Reservation reservation = rig.pool.reserve(Seat(0), Tokens(1000));
  EXPECT_EQ(rig.pool.outstanding(), Tokens(0));
  EXPECT_EQ(rig.pool.unpromised(), Tokens(64));
}

TEST(PoolDeathTest, BrokenPromisesEndTheProcess) {
  Rig rig;
  rig.leave(Seat(0), "idle");
  rig.pool.take(Seat(1), Tokens(0));
  EXPECT_DEATH((void)rig.pool.use(Seat(4)), "a seat that does not exist");
  EXPECT_DEATH((void)rig.pool.tokens(Seat(-1)), "a seat that does not exist");
  EXPECT_DEATH(rig.pool.take(Seat(1), Tokens(0)), "taking a seat that somebody has");
  EXPECT_DEATH(rig.pool.evict(Seat(1)), "evicting a seated sequence");
  EXPECT_DEATH(rig.pool.release(Seat(0), true, Micros(1)), "releasing a seat that nobody has");
  EXPECT_DEATH((void)rig.pool.reserve(Seat(0), Tokens(1)), "a promise to an empty chair");
  EXPECT_DEATH((void)rig.pool.reserve(Seat(1), Tokens(0)), "a promise of nothing");
  const Reservation reservation = rig.pool.reserve(Seat(1), Tokens(1));
  EXPECT_DEATH((void)rig.pool.reserve(Seat(1), Tokens(1)), "two promises to one seat");
  // Rows that the engine never computed.
  EXPECT_DEATH(rig.pool.appended(Seat(1), tokens_of("x")), "engine and ledger disagree");
  EXPECT_DEATH(rig.pool.appended(Seat(0), tokens_of("x")), "rows of a seat that nobody has");
}

// Random requests come, share, grow and go; the model is the text of each seat.
class Life {
 public:
  Life(MemoryKind kind, Layout layout) : rig_(kind, layout, 96), texts_(4), promised_(4) {}

  void step() {
    const auto at = *rc::gen::inRange<std::size_t>(0, 4);
    const Seat seat{static_cast<std::int32_t>(at)};
    if (rig_.pool.use(seat) == SeatUse::busy) {
      grow_or_go(at, seat);
    } else if (*rc::gen::inRange(0, 5) == 0) {
      rig_.pool.evict(seat);
      texts_[at].clear();
    } else {
      come(at, seat);
    }
    check();
  }

 private:
  void grow_or_go(std::size_t at, Seat seat) {
    if (*rc::gen::inRange(0, 4) == 0) {
      const bool keep = *rc::gen::arbitrary<bool>();
      promised_[at] = Reservation();
      rig_.pool.release(seat, keep, Micros(1));
      if (!keep) texts_[at].clear();
      return;
    }
    const std::string text = some_text(1, 5);
    const auto n = static_cast<std::int64_t>(text.size());
    const Tokens room = rig_.engine.geometry().layout == Layout::split
                            ? rig_.engine.limits().window - rig_.engine.position(seat)
                            : rig_.engine.limits().cells - rig_.pool.ledger().used();
    const bool limited = rig_.engine.capabilities().cells_per_token;
    if (limited && Tokens(n) > room) return;
    if (Tokens(n) + rig_.engine.position(seat) > rig_.engine.limits().window) return;
    rig_.compute(seat, text);
    texts_[at] += text;
  }

  void come(std::size_t at, Seat seat) {
    const auto of = *rc::gen::inRange<std::size_t>(0, 4);
    const Seat other{static_cast<std::int32_t>(of)};
    const std::string prompt = texts_[of] + some_text(1, 3);
    const PrefixMatch own = rig_.match(seat, prompt), lent = rig_.match(other, prompt);
    RC_ASSERT(own.own.value < static_cast<std::int64_t>(prompt.size()));
    if (of != at && lent.shareable > Tokens(0)) {
      RC_ASSERT(rig_.pool.take_shared(seat, other, lent.shareable) == lent.shareable);
      texts_[at] = prompt.substr(0, static_cast<std::size_t>(lent.shareable.value));
    } else {
      RC_ASSERT(rig_.pool.take(seat, own.own) == own.own);
      texts_[at] = prompt.substr(0, static_cast<std::size_t>(own.own.value));
    }
    promised_[at] = rig_.pool.reserve(seat, Tokens(*rc::gen::inRange(1, 30)));
  }

  static std::string some_text(int least, int most) {
    const int n = *rc::gen::inRange(least, most + 1);
    return *rc::gen::container<std::string>(static_cast<std::size_t>(n),
                                            rc::gen::element('a', 'b'));
  }

  void check() const {
    for (std::size_t at = 0; at < texts_.size(); ++at) {
      const Seat seat{static_cast<std::int32_t>(at)};
      RC_ASSERT(rig_.text(seat) == texts_[at]);
      RC_ASSERT(rig_.engine.position(seat) == rig_.pool.ledger().length(seat));
      RC_ASSERT(texts_[at].empty() || rig_.pool.use(seat) != SeatUse::empty);
    }
    const Tokens used = rig_.pool.ledger().used();
    if (rig_.engine.capabilities().cells_per_token) {
      RC_ASSERT(rig_.engine.cells_used() == used);
    } else {
      RC_ASSERT(used == Tokens(0));
    }
    RC_ASSERT(rig_.pool.unpromised() ==
              rig_.engine.limits().cells - used - rig_.pool.outstanding());
    RC_ASSERT(rig_.pool.used_by_busy() <= used);
  }

  Rig rig_;
  std::vector<std::string> texts_;
  std::vector<Reservation> promised_;
};

void live(MemoryKind kind, Layout layout) {
  Life life(kind, layout);
  for (int i = 0; i < 50; ++i) life.step();
}

RC_GTEST_PROP(PoolProperty, EngineAndLedgerAgreePooled, ()) {
  live(MemoryKind::attention, Layout::pooled);
}
RC_GTEST_PROP(PoolProperty, EngineAndLedgerAgreeSplit, ()) {
  live(MemoryKind::attention, Layout::split);
}
RC_GTEST_PROP(PoolProperty, EngineAndLedgerAgreeWithASlidingWindow, ()) {
  live(MemoryKind::sliding_window, Layout::pooled);
}
RC_GTEST_PROP(PoolProperty, EngineAndLedgerAgreeOnRecurrentMemory, ()) {
  live(MemoryKind::recurrent, Layout::pooled);
}
RC_GTEST_PROP(PoolProperty, EngineAndLedgerAgreeOnHybridMemory, ()) {
  live(MemoryKind::hybrid, Layout::pooled);
}

}  // namespace
}  // namespace fermata::kv
