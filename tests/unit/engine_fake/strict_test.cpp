// The fake is as strict as the tests that stand on it need: it notices every wrong cell, and ends
// the process where the library would compute nonsense.
#include "unit/engine_fake/rig.h"

#include <array>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata::engine::fake {
namespace {

std::vector<TokenId> reply_to(const std::string& cells) {
  return Rig().greedy_reply(Seat(0), cells);
}

TEST(FakeEngine, LostDoubledOrMisplacedCellChangesTheReply) {
  const auto right = reply_to("The sky is blue");
  EXPECT_EQ(reply_to("The sky is blue"), right);
  EXPECT_NE(reply_to("The sky is blu"), right);    // The last cell lost,
  EXPECT_NE(reply_to("he sky is blue"), right);    // the first,
  EXPECT_NE(reply_to("The skyis blue"), right);    // one in between;
  EXPECT_NE(reply_to("The skky is blue"), right);  // one twice;
  EXPECT_NE(reply_to("The ksy is blue"), right);   // two exchanged;
  EXPECT_NE(reply_to("the sky is blue"), right);   // another token.
}

RC_GTEST_PROP(FakeEngineProperty, OnlyEqualCellsGetEqualReplies, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::element('a', 'b'));
  const std::string a = "x" + *letters, b = "x" + *letters;
  RC_ASSERT((reply_to(a) == reply_to(b)) == (a == b));
}

TEST(FakeEngine, CellsBroughtFromTheWrongPlaceChangeTheReply) {
  Rig source;
  source.compute(Seat(0), "one two three");
  source.compute(Seat(1), "six two three");
  ByteBuffer right, wrong;
  ASSERT_TRUE(source.engine.export_range(Seat(0), Tokens(0), Tokens(4), right).ok());
  ASSERT_TRUE(source.engine.export_range(Seat(1), Tokens(0), Tokens(4), wrong).ok());
  Rig target;
  ASSERT_TRUE(target.engine.import_range(Seat(0), right).ok());
  ASSERT_TRUE(target.engine.import_range(Seat(1), wrong).ok());
  EXPECT_EQ(target.greedy_reply(Seat(0), "two three"), reply_to("one two three"));
  EXPECT_NE(target.greedy_reply(Seat(1), "two three"), reply_to("one two three"));
}

TEST(FakeEngine, StampsTellTheShapeACellWasComputedIn) {
  Rig rig;
  rig.compute(Seat(0), "four");
  rig.compute(Seat(0), "x");
  EXPECT_EQ(rig.engine.shape_stamps(Seat(0)), (std::vector<std::int32_t>{4, 4, 4, 4, 1}));
  // Moved bytes are exact: they keep it. Shared cells are the same cells.
  ByteBuffer bytes;
  ASSERT_TRUE(rig.engine.export_range(Seat(0), Tokens(3), Tokens(5), bytes).ok());
  ASSERT_EQ(rig.engine.share_prefix(Seat(0), Seat(1), Tokens(3)), EditOutcome::done);
  ASSERT_TRUE(rig.engine.import_range(Seat(1), bytes).ok());
  EXPECT_EQ(rig.engine.shape_stamps(Seat(1)), rig.engine.shape_stamps(Seat(0)));
  EXPECT_EQ(rig.engine.cells_used(), Tokens(7));
}

// What follows "one two three" on seat 0 when it was computed in pieces of so many tokens, beside
// `company` groups of other seats.
std::vector<TokenId> shaped_reply(const EngineOptions& options, bool shape_matters,
                                  std::size_t piece, std::int32_t company) {
  FakeModelSpec spec;
  spec.shape_matters = shape_matters;
  Rig rig(spec, {.n_ctx = Tokens(256), .layout = Layout::split}, options);
  const std::vector<TokenId> prompt = rig.tokens("one two three"), other = rig.tokens("x");
  for (std::size_t at = 0; at < prompt.size(); at += piece) {
    std::vector<RowGroup> groups;
    groups.push_back({Seat(0), rig.engine.position(Seat(0)),
                      std::span(prompt).subspan(at, std::min(piece, prompt.size() - at))});
    for (std::int32_t s = 1; s <= company; ++s) {
      groups.push_back({Seat(s), rig.engine.position(Seat(s)), other});
    }
    std::vector<GroupResult> results(groups.size());
    EXPECT_EQ(rig.engine.step(groups, results), StepOutcome::done);
  }
  return rig.greedy_reply(Seat(0), "!");
}

TEST(FakeEngine, ShapesMatterWhenAskedTo) {
  const EngineOptions together;
  EngineOptions apart;
  apart.one_sequence_per_ubatch = true;
  EXPECT_EQ(shaped_reply(together, false, 100, 0), shaped_reply(together, false, 3, 2));
  EXPECT_NE(shaped_reply(together, true, 100, 0), shaped_reply(together, true, 3, 0));
  EXPECT_NE(shaped_reply(together, true, 3, 0), shaped_reply(together, true, 3, 2));
  EXPECT_EQ(shaped_reply(apart, true, 3, 0), shaped_reply(apart, true, 3, 2));
  EXPECT_NE(shaped_reply(apart, true, 100, 0), shaped_reply(apart, true, 3, 0));
}

TEST(FakeEngine, WhatIsMovedKeepsItsShapes) {
  FakeModelSpec spec;
  spec.shape_matters = true;
  Rig rig(spec);
  rig.compute(Seat(0), "one ");
  rig.compute(Seat(0), "two");
  ByteBuffer bytes;
  ASSERT_TRUE(rig.engine.export_sequence(Seat(0), bytes).ok());
  ASSERT_TRUE(rig.engine.import_sequence(Seat(1), bytes).ok());
  rig.compute(Seat(2), "one two");
  const auto moved = rig.greedy_reply(Seat(1), "!");
  EXPECT_EQ(moved, rig.greedy_reply(Seat(0), "!"));
  EXPECT_NE(moved, rig.greedy_reply(Seat(2), "!"));
}

TEST(FakeEngine, LibraryPadsAndSoDoesTheFake) {
  const Rig pooled({}, {.n_ctx = Tokens(100), .n_parallel = 3});
  EXPECT_EQ(pooled.engine.limits().cells, Tokens(112));
  EXPECT_EQ(pooled.engine.limits().window, Tokens(112));
  EXPECT_EQ(pooled.engine.geometry().n_ctx, Tokens(112));
  const Rig split({}, {.n_ctx = Tokens(100), .n_parallel = 3, .layout = Layout::split});
  EXPECT_EQ(split.engine.limits().window, Tokens(48));
  EXPECT_EQ(split.engine.limits().cells, Tokens(144));
  FakeModelSpec spec;
  spec.trained_window = Tokens(512);
  const Rig trained(spec, {.n_ctx = Tokens(0)});
  EXPECT_EQ(trained.engine.limits().window, Tokens(512));
}

TEST(FakeEngine, TimePassesAsTheCostModelSays) {
  FakeClock clock;
  FakeModelSpec spec;
  spec.clock = &clock;
  spec.cost = {Micros(100), Micros(10), 1000};
  Rig rig(spec);
  rig.compute(Seat(0), "abc");  // Attends to 1 + 2 + 3 cells.
  EXPECT_EQ(clock.now(), Micros(100 + 3 * 10 + 6));
  rig.compute(Seat(0), "d");
  EXPECT_EQ(clock.now(), Micros(136 + 100 + 10 + 4));
}

TEST(FakeEngine, PromptsAndCopiesHaveTheirOwnPrice) {
  FakeClock clock;
  FakeModelSpec spec;
  spec.clock = &clock;
  spec.cost.per_row = Micros(10);
  spec.cost.per_prompt_row = Micros(3);
  spec.cost.per_moved_cell_ns = 2500;
  Rig rig(spec);
  rig.compute(Seat(0), "abcd");
  EXPECT_EQ(clock.now(), Micros(4 * 3));
  rig.compute(Seat(0), "e");
  EXPECT_EQ(clock.now(), Micros(12 + 10));
  ByteBuffer bytes;
  ASSERT_TRUE(rig.engine.export_range(Seat(0), Tokens(0), Tokens(4), bytes).ok());
  EXPECT_EQ(clock.now(), Micros(22 + 10));
  ASSERT_TRUE(rig.engine.import_range(Seat(1), bytes).ok());
  EXPECT_EQ(clock.now(), Micros(32 + 10));
}

TEST(FakeEngine, FaultsComeInTheAskedShareAndNoRoomChangesNothing) {
  FakeModelSpec spec;
  spec.faults = {.no_room_percent = 30, .broken_percent = 0};
  Rig rig(spec);
  const std::vector<TokenId> tokens = rig.tokens("x");
  int no_room = 0;
  for (int i = 0; i < 200; ++i) {
    const Tokens before = rig.engine.position(Seat(0));
    const RowGroup group{Seat(0), before, tokens, nullptr, nullptr};
    GroupResult result;
    const StepOutcome outcome = rig.engine.step({&group, 1}, {&result, 1});
    const bool refused = outcome == StepOutcome::no_room;
    ASSERT_TRUE(refused || outcome == StepOutcome::done);
    ASSERT_EQ(result.computed, Tokens(refused ? 0 : 1));
    ASSERT_EQ(rig.engine.position(Seat(0)), before + result.computed);
    no_room += refused;
  }
  EXPECT_GT(no_room, 30);
  EXPECT_LT(no_room, 90);
}

TEST(FakeEngine, BrokenStepIsTold) {
  FakeModelSpec spec;
  spec.faults = {.no_room_percent = 0, .broken_percent = 100};
  Rig rig(spec);
  const std::vector<TokenId> tokens = rig.tokens("x");
  const RowGroup group{Seat(0), Tokens(0), tokens, nullptr, nullptr};
  GroupResult result;
  EXPECT_EQ(rig.engine.step({&group, 1}, {&result, 1}), StepOutcome::broken);
}

TEST(FakeModel, RefusesAGeometryThatHasAFault) {
  const auto model = make_model({});
  EXPECT_TRUE(model->build({}, {}).ok());
  const auto refused = model->build({.n_parallel = 0}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("n_parallel"), std::string::npos);
  EngineOptions options;
  options.flash_attention = false;
  EXPECT_FALSE(model->build({.cache_type_v = KvType::q8_0}, options).ok());
}

TEST(FakeModel, FingerprintTellsWeightsKindAndTypes) {
  FakeModelSpec other_seed, other_kind;
  other_seed.seed = 2;
  other_kind.kind = MemoryKind::hybrid;
  const Fingerprint own = make_model({})->fingerprint(KvType::f16, KvType::f16);
  EXPECT_EQ(make_model({})->fingerprint(KvType::f16, KvType::f16), own);
  EXPECT_NE(make_model({})->fingerprint(KvType::f32, KvType::f16), own);
  EXPECT_NE(make_model({})->fingerprint(KvType::f16, KvType::f32), own);
  EXPECT_NE(make_model(other_seed)->fingerprint(KvType::f16, KvType::f16), own);
  EXPECT_NE(make_model(other_kind)->fingerprint(KvType::f16, KvType::f16), own);
}

// A step of the given groups on an engine whose seat 0 holds "held".
class FakeEngineDeathTest : public ::testing::Test {
 protected:
  FakeEngineDeathTest() { rig_.compute(Seat(0), "held"); }

  RowGroup group(int seat, std::int64_t first, const std::vector<TokenId>& tokens) const {
    return {Seat(seat), Tokens(first), tokens, nullptr, nullptr};
  }
  void step(const std::vector<RowGroup>& groups) {
    std::vector<GroupResult> results(groups.size());
    (void)rig_.engine.step(groups, results);
  }

  Rig rig_{
      {}, {.n_ctx = Tokens(64), .n_parallel = 2}, {.n_batch = Tokens(16), .n_ubatch = Tokens(8)}};
  const std::vector<TokenId> one_ = rig_.tokens("x");
};

TEST_F(FakeEngineDeathTest, RowsThatDoNotContinueTheirSequence) {
  EXPECT_DEATH(step({group(0, 3, one_)}), "rows do not continue their sequence");
  EXPECT_DEATH(step({group(0, 5, one_)}), "rows do not continue their sequence");
  EXPECT_DEATH(step({group(1, 4, one_)}), "rows do not continue their sequence");
}

TEST_F(FakeEngineDeathTest, GroupsThatNoStepMayHave) {
  const std::vector<TokenId> foreign{TokenId{n_vocab}}, negative{TokenId{-1}};
  const std::vector<TokenId> many = rig_.tokens(std::string(17, 'x'));
  EXPECT_DEATH(step({group(0, 4, one_), group(0, 4, one_)}), "two groups of one seat");
  EXPECT_DEATH(step({group(0, 4, {})}), "a group without rows");
  EXPECT_DEATH(step({}), "rows outside the batch limit");
  EXPECT_DEATH(step({group(0, 4, many)}), "rows outside the batch limit");
  EXPECT_DEATH(step({group(0, 4, foreign)}), "a token outside the vocabulary");
  EXPECT_DEATH(step({group(0, 4, negative)}), "a token outside the vocabulary");
  EXPECT_DEATH(step({group(2, 0, one_)}), "a seat that does not exist");
  EXPECT_DEATH(step({group(-1, 0, one_)}), "a seat that does not exist");
}

TEST_F(FakeEngineDeathTest, RowsBeyondTheWindow) {
  Rig split({}, {.n_ctx = Tokens(32), .n_parallel = 2, .layout = Layout::split});
  EXPECT_DEATH(split.compute(Seat(0), std::string(17, 'x')), "rows beyond the window");
}

TEST_F(FakeEngineDeathTest, EditsThatAreNone) {
  auto& engine = rig_.engine;
  EXPECT_DEATH((void)engine.truncate(Seat(0), Tokens(5)), "keeping more than there is");
  EXPECT_DEATH((void)engine.share_prefix(Seat(0), Seat(0), Tokens(1)), "sharing with itself");
  EXPECT_DEATH((void)engine.share_prefix(Seat(0), Seat(1), Tokens(5)), "sharing more than");
  rig_.compute(Seat(1), "held too");
  EXPECT_DEATH((void)engine.share_prefix(Seat(0), Seat(1), Tokens(1)), "sharing into a seat");
  EXPECT_DEATH((void)engine.position(Seat(2)), "a seat that does not exist");
  ByteBuffer bytes;
  EXPECT_DEATH((void)engine.export_range(Seat(0), Tokens(2), Tokens(2), bytes), "no such range");
  EXPECT_DEATH((void)engine.export_range(Seat(0), Tokens(0), Tokens(5), bytes), "no such range");
  ASSERT_TRUE(engine.export_range(Seat(0), Tokens(1), Tokens(3), bytes).ok());
  EXPECT_DEATH((void)engine.import_range(Seat(0), bytes), "a range out of its place");
}

TEST_F(FakeEngineDeathTest, SamplerOfAnotherVocabulary) {
  class Foreign final : public Sampler {
   public:
    std::unique_ptr<Sampler> clone() const override { return std::make_unique<Foreign>(); }
    std::uint32_t seed() const override { return 0; }
    bool end_thoughts() override { return false; }
  };
  Foreign foreign;
  EXPECT_DEATH(rig_.compute(Seat(0), "x", &foreign), "a sampler of another vocabulary");
}

}  // namespace
}  // namespace fermata::engine::fake
