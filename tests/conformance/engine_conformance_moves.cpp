// The contract of engine/engine.h where cells move, run short, or nobody waits for them any more.
#include "base/random.h"
#include "conformance/engine_conformance.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <thread>

namespace fermata::engine {
namespace {

constexpr int reply = 8;

using Range = ByteBuffer;

Range exported(Bench& b, Seat seat, std::int64_t begin, std::int64_t end) {
  Range bytes;
  const auto done = b.engine().export_range(seat, Tokens(begin), Tokens(end), bytes);
  EXPECT_TRUE(done.ok());
  EXPECT_FALSE(bytes.empty());
  return bytes;
}

bool moves(Bench& b) { return b.engine().capabilities().move_ranges; }

TEST_P(EngineConformance, WhereRangesCannotMoveNothingChanges) {
  Bench b = bench();
  EXPECT_EQ(moves(b),
            GetParam().kind == MemoryKind::attention && GetParam().layout == Layout::pooled);
  if (moves(b)) return;
  const auto first = b.complete(Seat(0), some_text(30, 20), reply);
  Range bytes;
  const auto out = b.engine().export_range(Seat(0), Tokens(2), Tokens(9), bytes);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error(), MoveFault::unsupported);
  const std::array<std::byte, 100> any{};
  const auto in = b.engine().import_range(Seat(1), any);
  ASSERT_FALSE(in.ok());
  EXPECT_EQ(in.error(), MoveFault::unsupported);
  EXPECT_EQ(b.engine().position(Seat(0)), Tokens(20 + reply - 1));
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(0));
}

TEST_P(EngineConformance, RangesMoveToAnotherEngineAndContinueByteForByte) {
  Bench from = bench(1024, 4);
  if (!moves(from)) return;
  const Text prompt = some_text(31, 50);
  const auto said = from.complete(Seat(2), prompt, reply);
  // The last token said is not computed yet: the cells end before it.
  const std::int64_t end = from.engine().position(Seat(2)).value;
  const Range a = exported(from, Seat(2), 0, 17);
  const Range b = exported(from, Seat(2), 17, end);
  const auto stayed = from.follow(Seat(2), said.back(), reply);

  Bench to = bench(512, 1);
  ASSERT_TRUE(to.engine().import_range(Seat(0), a).ok());
  EXPECT_EQ(to.engine().position(Seat(0)), Tokens(17));
  ASSERT_TRUE(to.engine().import_range(Seat(0), b).ok());
  EXPECT_EQ(to.engine().position(Seat(0)), Tokens(end));
  EXPECT_EQ(exported(to, Seat(0), 0, 17), a) << "what came in goes out again";
  EXPECT_TRUE(same(stayed, to.follow(Seat(0), said.back(), reply)));
}

TEST_P(EngineConformance, SequencesOfEveryMemoryLeaveAndComeBackByteForByte) {
  Bench b = bench();
  ASSERT_TRUE(b.engine().capabilities().move_sequences);
  const auto said = b.complete(Seat(0), some_text(37, 50), reply);
  const Tokens end = b.engine().position(Seat(0));
  Range bytes, again;
  ASSERT_TRUE(b.engine().export_sequence(Seat(0), bytes).ok());
  EXPECT_EQ(b.engine().position(Seat(0)), end);
  const auto stayed = b.follow(Seat(0), said.back(), reply);

  // It left, somebody else was there, and it comes back to another seat.
  b.engine().clear(Seat(0));
  b.complete(Seat(0), some_text(38, 20), reply);
  b.engine().clear(Seat(0));
  ASSERT_TRUE(b.engine().import_sequence(Seat(1), bytes).ok());
  EXPECT_EQ(b.engine().position(Seat(1)), end);
  ASSERT_TRUE(b.engine().export_sequence(Seat(1), again).ok());
  EXPECT_EQ(again.size(), bytes.size());
  EXPECT_TRUE(same(stayed, b.follow(Seat(1), said.back(), reply)));
}

TEST_P(EngineConformance, SequencesThatAreNotItsOwnAreRefused) {
  Bench b = bench();
  Bench other = bench(1024, 4, 2);
  b.complete(Seat(0), some_text(39, 30), reply);
  other.complete(Seat(0), some_text(39, 30), reply);
  Range good, foreign;
  ASSERT_TRUE(b.engine().export_sequence(Seat(0), good).ok());
  ASSERT_TRUE(other.engine().export_sequence(Seat(0), foreign).ok());
  for (const Range& bad :
       {foreign, Range(), Range(good.size()), Range(good.begin(), good.end() - 1)}) {
    const auto in = b.engine().import_sequence(Seat(1), bad);
    ASSERT_FALSE(in.ok());
    EXPECT_EQ(in.error(), MoveFault::foreign);
    EXPECT_EQ(b.engine().position(Seat(1)), Tokens(0));
  }
}

TEST_P(EngineConformance, ExportLeavesTheSeatAsItWas) {
  Bench b = bench();
  if (!moves(b)) return;
  const Text prompt = some_text(32, 30);
  const auto alone = b.complete(Seat(0), prompt, reply);
  b.engine().clear(Seat(0));
  const Sampled first = b.feed(Seat(0), prompt);
  const Range once = exported(b, Seat(0), 5, 25);
  EXPECT_EQ(exported(b, Seat(0), 5, 25), once);
  EXPECT_EQ(b.engine().position(Seat(0)), Tokens(30));
  EXPECT_TRUE(same(alone, b.follow(Seat(0), first, reply)));
}

TEST_P(EngineConformance, ADeltaGoesOnTopOfASharedBase) {
  Bench b = bench();
  if (!moves(b)) return;
  const Text base = some_text(33, 40);
  const Text delta = some_text(34, 16);
  const Text tail = some_text(35, 4);
  b.feed(Seat(0), base);
  b.feed(Seat(0), delta);
  const Range bytes = exported(b, Seat(0), 40, 56);
  ASSERT_EQ(b.engine().share_prefix(Seat(0), Seat(1), Tokens(40)), EditOutcome::done);
  b.engine().clear(Seat(0));
  ASSERT_TRUE(b.engine().import_range(Seat(1), bytes).ok());
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(56));
  const auto joined = b.complete(Seat(1), tail, reply);
  b.feed(Seat(2), base);
  b.feed(Seat(2), delta);
  EXPECT_TRUE(alike(b.complete(Seat(2), tail, reply), joined, GetParam().shape_tolerance));
}

TEST_P(EngineConformance, ForeignAndCutBytesAreRefused) {
  Bench b = bench();
  if (!moves(b)) return;
  Bench other = bench(1024, 4, 2);
  const Text prompt = some_text(36, 30);
  b.feed(Seat(0), prompt);
  other.feed(Seat(0), prompt);
  const Range good = exported(b, Seat(0), 0, 20);
  std::map<std::string, Range> bad;
  bad["nothing"] = {};
  bad["zeros"] = Range(good.size());
  bad["of another model"] = exported(other, Seat(0), 0, 20);
  bad["cut by one"] = Range(good.begin(), good.end() - 1);
  bad["one more"] = good;
  bad["one more"].push_back(std::byte{7});
  bad["first byte only"] = Range(good.begin(), good.begin() + 1);
  for (const auto& [name, bytes] : bad) {
    const auto in = b.engine().import_range(Seat(1), bytes);
    ASSERT_FALSE(in.ok()) << name;
    EXPECT_EQ(in.error(), MoveFault::foreign) << name;
    EXPECT_EQ(b.engine().position(Seat(1)), Tokens(0)) << name;
  }
  ASSERT_TRUE(b.engine().import_range(Seat(1), good).ok());
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(20));
}

TEST_P(EngineConformance, AnImportWithoutRoomChangesNothing) {
  Bench big = bench(1024, 2);
  if (!moves(big)) return;
  const Text prompt = some_text(37, 200);
  big.feed(Seat(0), prompt);
  const Range bytes = exported(big, Seat(0), 0, 200);
  Bench small = bench(256, 2);
  const auto kept = small.complete(Seat(0), some_text(38, 100), 1);
  const auto in = small.engine().import_range(Seat(1), bytes);
  ASSERT_FALSE(in.ok());
  EXPECT_EQ(in.error(), MoveFault::no_room);
  EXPECT_EQ(small.engine().position(Seat(1)), Tokens(0));
  EXPECT_EQ(small.engine().position(Seat(0)), Tokens(100));
  Bench fresh = bench(256, 2);
  fresh.feed(Seat(0), some_text(38, 100));
  EXPECT_TRUE(same(fresh.follow(Seat(0), kept[0], reply), small.follow(Seat(0), kept[0], reply)));
  small.engine().clear(Seat(0));
  EXPECT_TRUE(small.engine().import_range(Seat(1), bytes).ok()) << "room again";
}

TEST_P(EngineConformance, AStepWithoutRoomChangesNothing) {
  if (!pooled_cells()) return;  // A seat of its own always has room for its window.
  Bench b = bench(256, 3);
  const Text first = some_text(39, 150);
  const Text second = some_text(40, 100);
  const auto said = b.complete(Seat(0), first, 1);
  b.feed(Seat(1), second);
  std::vector<GroupResult> results;
  const Text more = some_text(41, 16);
  ASSERT_EQ(b.step({b.rows(Seat(2), more)}, results), StepOutcome::no_room);
  EXPECT_EQ(results[0].computed, Tokens(0));
  EXPECT_EQ(b.engine().position(Seat(0)), Tokens(150));
  EXPECT_EQ(b.engine().position(Seat(1)), Tokens(100));
  EXPECT_EQ(b.engine().position(Seat(2)), Tokens(0));
  // A smaller step still fits, and nobody's memory has changed.
  Bench fresh = bench(256, 3);
  fresh.feed(Seat(0), first);
  fresh.feed(Seat(1), second);
  EXPECT_TRUE(same(fresh.follow(Seat(0), said[0], 4), b.follow(Seat(0), said[0], 4)));
  b.engine().clear(Seat(1));
  EXPECT_EQ(b.step({b.rows(Seat(2), more)}, results), StepOutcome::done);
}

TEST_P(EngineConformance, CancelledGroupsAreLeftOut) {
  Bench b = bench();
  const Text text = some_text(42, 12);
  const std::atomic<bool> cancelled{true};
  const std::atomic<bool> wanted{false};
  const auto sampler = b.greedy();
  std::vector<GroupResult> results;
  ASSERT_EQ(b.step({b.rows(Seat(0), text, nullptr, &cancelled),
                    b.rows(Seat(1), text, sampler.get(), &wanted)},
                   results),
            StepOutcome::interrupted);
  EXPECT_EQ(results[0].computed, Tokens(0));
  EXPECT_EQ(b.engine().position(Seat(0)), Tokens(0));
  EXPECT_EQ(results[1].computed, Tokens(12));
  ASSERT_TRUE(results[1].sampled.has_value());
  const auto company = b.follow(Seat(1), *results[1].sampled, reply);
  b.engine().clear(Seat(1));
  EXPECT_TRUE(same(b.complete(Seat(1), text, reply), company));
}

TEST_P(EngineConformance, AStepOfCancelledGroupsComputesNothing) {
  Bench b = bench();
  const Text text = some_text(43, 12);
  const std::atomic<bool> cancelled{true};
  std::vector<GroupResult> results;
  ASSERT_EQ(b.step({b.rows(Seat(0), text, nullptr, &cancelled)}, results),
            StepOutcome::interrupted);
  EXPECT_EQ(results[0].computed, Tokens(0));
  EXPECT_EQ(b.engine().position(Seat(0)), Tokens(0));
}

// Whenever the cancellation comes, before, between or inside ubatches or too late: what the results
// and position() say is the truth, and the sequence and its neighbours go on from there.
TEST_P(EngineConformance, ACancellationDuringAStepLeavesTheTruth) {
  Bench b = bench();
  const Text neighbour = some_text(44, 10);
  const Text text = some_text(45, 60);
  const auto alone = b.complete(Seat(1), neighbour, reply);
  const auto whole = b.complete(Seat(0), text, reply);
  for (int round = 0; round < 20; ++round) {
    b.engine().clear(Seat(0));
    b.engine().clear(Seat(1));
    const Sampled first = b.feed(Seat(1), neighbour);
    std::atomic<bool> cancelled{false};
    std::thread canceller([&] { cancelled.store(true); });
    std::vector<GroupResult> results;
    const StepOutcome outcome = b.step({b.rows(Seat(0), text, nullptr, &cancelled)}, results);
    canceller.join();
    const Tokens computed = results[0].computed;
    EXPECT_EQ(b.engine().position(Seat(0)), computed);
    EXPECT_EQ(outcome, computed == Tokens(60) ? StepOutcome::done : StepOutcome::interrupted);
    EXPECT_TRUE(alike(alone, b.follow(Seat(1), first, reply), GetParam().shape_tolerance));
    if (computed == Tokens(60)) continue;
    const Text rest(text.begin() + computed.value, text.end());
    EXPECT_TRUE(alike(whole, b.complete(Seat(0), rest, reply), GetParam().shape_tolerance));
  }
}

// A walk over all operations; each seat must at any time remember exactly its own tokens.
TEST_P(EngineConformance, RandomOperationsKeepEverySequenceItsOwn) {
  Bench b = bench(1024, 4);
  Bench oracle = bench(1024, 4);
  Random random(7);
  std::map<int, Text> held;
  const auto position = [&](int seat) { return static_cast<std::int64_t>(held[seat].size()); };
  for (int step = 0; step < 120; ++step) {
    const int seat = static_cast<int>(random.between(0, 3));
    const int other = static_cast<int>((seat + random.between(1, 3)) % 4);
    const std::int64_t kind = random.between(0, 9);
    if (kind <= 4 && position(seat) < 150) {
      const Text more = some_text(random(), random.between(1, 30));
      b.feed(Seat(seat), more, random.between(1, 30));
      held[seat].insert(held[seat].end(), more.begin(), more.end());
    } else if (kind == 5 && position(seat) > 0) {
      const Tokens keep =
          b.engine().truncatable(Seat(seat), Tokens(random.between(0, position(seat))));
      ASSERT_EQ(b.engine().truncate(Seat(seat), keep), EditOutcome::done);
      held[seat].resize(static_cast<std::size_t>(keep.value));
    } else if (kind == 6) {
      b.engine().clear(Seat(seat));
      held[seat].clear();
    } else if (kind == 7 && position(seat) > 0 && b.engine().capabilities().share_prefix) {
      b.engine().clear(Seat(other));
      const std::int64_t n = random.between(1, position(seat));
      ASSERT_EQ(b.engine().share_prefix(Seat(seat), Seat(other), Tokens(n)), EditOutcome::done);
      held[other].assign(held[seat].begin(), held[seat].begin() + n);
    } else if (kind == 8 && position(seat) > 1 && moves(b)) {
      // Out and in again, in two pieces.
      const std::int64_t middle = random.between(1, position(seat) - 1);
      const Range first = exported(b, Seat(seat), 0, middle);
      const Range second = exported(b, Seat(seat), middle, position(seat));
      b.engine().clear(Seat(seat));
      ASSERT_TRUE(b.engine().import_range(Seat(seat), first).ok());
      ASSERT_TRUE(b.engine().import_range(Seat(seat), second).ok());
    }
    ASSERT_EQ(b.engine().position(Seat(seat)), Tokens(position(seat)));
    ASSERT_EQ(b.engine().position(Seat(other)), Tokens(position(other)));
  }
  for (int seat = 0; seat < 4; ++seat) {
    const Text probe = some_text(99, 3);
    Text all = held[seat];
    all.insert(all.end(), probe.begin(), probe.end());
    oracle.engine().clear(Seat(0));
    EXPECT_TRUE(alike(oracle.complete(Seat(0), all, 3), b.complete(Seat(seat), probe, 3),
                      GetParam().shape_tolerance))
        << "seat " << seat;
  }
}

}  // namespace
}  // namespace fermata::engine
