#include "kv/ledger.h"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata::kv {
namespace {

SeatSet seats(std::initializer_list<std::size_t> list) {
  SeatSet out;
  for (std::size_t seat : list) out.set(seat);
  return out;
}

TEST(Ledger, CountsSharedCellsOnce) {
  Ledger ledger(3, true);
  ledger.append(Seat(0), Tokens(100));
  ledger.share(Seat(0), Seat(1), Tokens(60));
  ledger.append(Seat(1), Tokens(20));
  EXPECT_EQ(ledger.used(), Tokens(120));
  EXPECT_EQ(ledger.length(Seat(1)), Tokens(80));
  EXPECT_EQ(ledger.exclusive(Seat(0)), Tokens(40));
  EXPECT_EQ(ledger.exclusive(Seat(1)), Tokens(20));
  EXPECT_EQ(ledger.used_by(seats({0})), Tokens(100));
  EXPECT_EQ(ledger.used_by(seats({1})), Tokens(80));
  EXPECT_EQ(ledger.used_by(seats({0, 1, 2})), Tokens(120));
  EXPECT_EQ(ledger.used_by({}), Tokens(0));
}

TEST(Ledger, CountsWhatSeveralSeatsHoldAloneAndTogether) {
  Ledger ledger(3, true);
  ledger.append(Seat(0), Tokens(100));
  ledger.share(Seat(0), Seat(1), Tokens(60));
  ledger.share(Seat(0), Seat(2), Tokens(40));
  ledger.append(Seat(1), Tokens(20));
  EXPECT_EQ(ledger.exclusive(seats({0, 1})), Tokens(80));
  EXPECT_EQ(ledger.exclusive(seats({0, 1, 2})), Tokens(120));
  EXPECT_EQ(ledger.exclusive(seats({2})), ledger.exclusive(Seat(2)));
  EXPECT_EQ(ledger.shared(Seat(0), Seat(1)), Tokens(60));
  EXPECT_EQ(ledger.shared(Seat(2), Seat(1)), Tokens(40));
  ledger.clear(Seat(0));
  EXPECT_EQ(ledger.shared(Seat(0), Seat(1)), Tokens(0));
}

TEST(Ledger, ClearingTheLenderLeavesWhatWasLent) {
  Ledger ledger(2, true);
  ledger.append(Seat(0), Tokens(100));
  ledger.share(Seat(0), Seat(1), Tokens(60));
  ledger.clear(Seat(0));
  EXPECT_EQ(ledger.used(), Tokens(60));
  EXPECT_EQ(ledger.exclusive(Seat(1)), Tokens(60));
  ledger.clear(Seat(1));
  EXPECT_EQ(ledger.used(), Tokens(0));
}

TEST(Ledger, RowsAppendedBehindSharedCellsBelongToOneSeat) {
  Ledger ledger(2, true);
  ledger.append(Seat(0), Tokens(10));
  ledger.share(Seat(0), Seat(1), Tokens(10));
  ledger.append(Seat(0), Tokens(1));
  EXPECT_EQ(ledger.exclusive(Seat(0)), Tokens(1));
  EXPECT_EQ(ledger.exclusive(Seat(1)), Tokens(0));
  // With the borrower gone the lender's cells are its own again, all of them.
  ledger.clear(Seat(1));
  ledger.append(Seat(0), Tokens(1));
  EXPECT_EQ(ledger.exclusive(Seat(0)), Tokens(12));
}

TEST(Ledger, TruncatingMayCutIntoSharedCells) {
  Ledger ledger(2, true);
  ledger.append(Seat(0), Tokens(10));
  ledger.share(Seat(0), Seat(1), Tokens(8));
  ledger.truncate(Seat(0), Tokens(3));
  EXPECT_EQ(ledger.used(), Tokens(8));
  EXPECT_EQ(ledger.exclusive(Seat(1)), Tokens(5));
  EXPECT_EQ(ledger.exclusive(Seat(0)), Tokens(0));
}

TEST(Ledger, WithoutCellsOnlyLengthsAreKept) {
  Ledger ledger(2, false);
  ledger.append(Seat(0), Tokens(1'000'000));
  EXPECT_EQ(ledger.length(Seat(0)), Tokens(1'000'000));
  EXPECT_EQ(ledger.used(), Tokens(0));
  EXPECT_EQ(ledger.exclusive(Seat(0)), Tokens(0));
  EXPECT_EQ(ledger.used_by(seats({0, 1})), Tokens(0));
  ledger.truncate(Seat(0), Tokens(7));
  EXPECT_EQ(ledger.length(Seat(0)), Tokens(7));
}

TEST(LedgerDeathTest, BrokenPromisesEndTheProcess) {
  EXPECT_DEATH(Ledger(0, true), "seats outside the library's limit");
  EXPECT_DEATH(Ledger(n_parallel_max + 1, true), "seats outside the library's limit");
  Ledger ledger(2, true);
  ledger.append(Seat(0), Tokens(4));
  EXPECT_DEATH((void)ledger.length(Seat(2)), "a seat that does not exist");
  EXPECT_DEATH(ledger.append(Seat(-1), Tokens(1)), "a seat that does not exist");
  EXPECT_DEATH(ledger.append(Seat(0), Tokens(-1)), "appending less than nothing");
  EXPECT_DEATH(ledger.truncate(Seat(0), Tokens(5)), "keeping more than there is");
  EXPECT_DEATH(ledger.truncate(Seat(0), Tokens(-1)), "keeping more than there is");
  EXPECT_DEATH(ledger.share(Seat(0), Seat(0), Tokens(1)), "sharing with itself");
  EXPECT_DEATH(ledger.share(Seat(0), Seat(1), Tokens(5)), "sharing more than there is");
  EXPECT_DEATH(ledger.share(Seat(0), Seat(1), Tokens(0)), "sharing more than there is");
  ledger.append(Seat(1), Tokens(1));
  EXPECT_DEATH(ledger.share(Seat(0), Seat(1), Tokens(1)), "sharing into a seat that holds cells");
}

// The same in the plainest way: every cell has a number.
class Model {
 public:
  explicit Model(std::size_t seats) : seats_(seats) {}

  void append(std::size_t seat, int n) {
    for (int i = 0; i < n; ++i) seats_[seat].push_back(next_++);
  }
  void truncate(std::size_t seat, std::size_t keep) { seats_[seat].resize(keep); }
  void share(std::size_t from, std::size_t to, std::size_t n) {
    seats_[to].assign(seats_[from].begin(), seats_[from].begin() + static_cast<std::ptrdiff_t>(n));
  }
  std::size_t length(std::size_t seat) const { return seats_[seat].size(); }
  std::set<int> cells(const SeatSet& of) const {
    std::set<int> out;
    for (std::size_t s = 0; s < seats_.size(); ++s) {
      if (of.test(s)) out.insert(seats_[s].begin(), seats_[s].end());
    }
    return out;
  }

 private:
  std::vector<std::vector<int>> seats_;
  int next_ = 0;
};

Tokens count(const std::set<int>& cells) { return Tokens(static_cast<std::int64_t>(cells.size())); }

struct Pair {
  Ledger ledger;
  Model model;

  Pair(std::size_t n, bool cells_per_token)
      : ledger(static_cast<std::int32_t>(n), cells_per_token), model(n) {}

  void change(std::size_t n_seats) {
    const auto a = *rc::gen::inRange<std::size_t>(0, n_seats);
    const auto b = *rc::gen::inRange<std::size_t>(0, n_seats);
    const Seat seat{static_cast<std::int32_t>(a)}, other{static_cast<std::int32_t>(b)};
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
      case 1: {
        const int n = *rc::gen::inRange(0, 9);
        ledger.append(seat, Tokens(n));
        model.append(a, n);
        break;
      }
      case 2: {
        const auto keep = *rc::gen::inRange<std::size_t>(0, model.length(a) + 1);
        ledger.truncate(seat, Tokens(static_cast<std::int64_t>(keep)));
        model.truncate(a, keep);
        break;
      }
      case 3: {
        if (a == b || model.length(a) == 0) break;
        ledger.clear(other);
        model.truncate(b, 0);
        const auto n = *rc::gen::inRange<std::size_t>(1, model.length(a) + 1);
        ledger.share(seat, other, Tokens(static_cast<std::int64_t>(n)));
        model.share(a, b, n);
        break;
      }
      default:
        ledger.clear(seat);
        model.truncate(a, 0);
    }
  }
};

void check_equal(const Pair& pair, std::size_t n_seats, bool cells_per_token) {
  const SeatSet all = SeatSet().set();
  for (std::size_t s = 0; s < n_seats; ++s) {
    const Seat seat{static_cast<std::int32_t>(s)};
    RC_ASSERT(pair.ledger.length(seat).value == static_cast<std::int64_t>(pair.model.length(s)));
    const Tokens alone =
        count(pair.model.cells(all)) - count(pair.model.cells(SeatSet(all).reset(s)));
    RC_ASSERT(pair.ledger.exclusive(seat) == (cells_per_token ? alone : Tokens(0)));
  }
  RC_ASSERT(pair.ledger.used() == (cells_per_token ? count(pair.model.cells(all)) : Tokens(0)));
  SeatSet some;
  const auto bits = *rc::gen::arbitrary<std::uint32_t>();
  for (std::size_t s = 0; s < n_seats; ++s) some.set(s, (bits >> (s % 32) & 1) != 0);
  RC_ASSERT(pair.ledger.used_by(some) ==
            (cells_per_token ? count(pair.model.cells(some)) : Tokens(0)));
}

void compare(std::size_t n_seats, bool cells_per_token) {
  Pair pair(n_seats, cells_per_token);
  for (int i = 0; i < 50; ++i) pair.change(n_seats);
  check_equal(pair, n_seats, cells_per_token);
  // Nothing is lost on the way to an empty ledger.
  for (std::size_t s = 0; s < n_seats; ++s) pair.ledger.clear(Seat(static_cast<std::int32_t>(s)));
  RC_ASSERT(pair.ledger.used() == Tokens(0));
}

RC_GTEST_PROP(LedgerProperty, AgreesWithASetOfCells, ()) {
  compare(*rc::gen::inRange<std::size_t>(1, 7), true);
}
RC_GTEST_PROP(LedgerProperty, AgreesWithoutCells, ()) {
  compare(*rc::gen::inRange<std::size_t>(1, 7), false);
}

// One prompt lent to every seat, again and again at other lengths.
TEST(Ledger, ManySeatsCutOnePromptInManyPlaces) {
  constexpr std::size_t n = n_parallel_max;
  Pair pair(n, true);
  pair.ledger.append(Seat(0), Tokens(400));
  pair.model.append(0, 400);
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t s = 1; s < n; ++s) {
      const Seat seat{static_cast<std::int32_t>(s)};
      const std::size_t length = 1 + (s * 37 + round * 101) % 400;
      pair.ledger.clear(seat);
      pair.ledger.share(Seat(0), seat, Tokens(static_cast<std::int64_t>(length)));
      pair.ledger.append(seat, Tokens(2));
      pair.model.truncate(s, 0);
      pair.model.share(0, s, length);
      pair.model.append(s, 2);
    }
    EXPECT_EQ(pair.ledger.used(), Tokens(400 + 2 * (n - 1)));
    EXPECT_EQ(pair.ledger.exclusive(Seat(7)), Tokens(2));
  }
  pair.ledger.clear(Seat(0));
  pair.model.truncate(0, 0);
  EXPECT_EQ(pair.ledger.used(), count(pair.model.cells(SeatSet().set())));
}

}  // namespace
}  // namespace fermata::kv
