#include "unit/engine_fake/rig.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata::engine::fake {
namespace {

std::string reply(const SamplingParams& params, int n, const FakeModelSpec& spec = {}) {
  Rig rig(spec);
  const auto sampler = rig.sampler(params);
  return rig.vocabulary->detokenize(rig.reply(Seat(0), "prompt", n, *sampler));
}

SamplingParams forced(const std::string& quoted) {
  SamplingParams params = Rig::greedy();
  params.grammar = "root ::= \"" + quoted + "\"";
  return params;
}

TEST(FakeVocabulary, HasOneTokenForEachByteAndThreeForControl) {
  const auto vocabulary = make_vocabulary();
  EXPECT_EQ(vocabulary->size(), n_vocab);
  EXPECT_EQ(vocabulary->piece(TokenId{'a'}), "a");
  EXPECT_EQ(vocabulary->piece(TokenId{0}), std::string(1, '\0'));
  EXPECT_EQ(vocabulary->piece(TokenId{255}), "\xFF");
  EXPECT_EQ(vocabulary->piece(eos_token), "");
  EXPECT_EQ(vocabulary->piece_with_special(eos_token), "<eos>");
  EXPECT_TRUE(vocabulary->ends_generation(eos_token));
  EXPECT_TRUE(vocabulary->ends_generation(turn_end_token));
  EXPECT_FALSE(vocabulary->ends_generation(turn_begin_token));
  EXPECT_FALSE(vocabulary->ends_generation(TokenId{'a'}));
  EXPECT_EQ(vocabulary->special().eos, eos_token);
}

TEST(FakeVocabulary, ControlTextIsPlainTextUnlessAskedFor) {
  const auto vocabulary = make_vocabulary();
  EXPECT_EQ(vocabulary->tokenize("<eos>", false, false).size(), 5U);
  EXPECT_EQ(vocabulary->tokenize("<turn>a</turn><eos>", false, true),
            (std::vector<TokenId>{turn_begin_token, TokenId{'a'}, turn_end_token, eos_token}));
  EXPECT_EQ(vocabulary->tokenize("<turn", false, true).size(), 5U);
}

RC_GTEST_PROP(FakeVocabulary, AnyBytesRoundTrip, (const std::string& text)) {
  const auto vocabulary = make_vocabulary();
  const auto tokens = vocabulary->tokenize(text, true, false);
  RC_ASSERT(tokens.size() == text.size());
  RC_ASSERT(vocabulary->detokenize(tokens) == text);
}

RC_GTEST_PROP(FakeVocabulary, AnyTokensRoundTrip, ()) {
  const auto vocabulary = make_vocabulary();
  // Control tokens and what is not their text: bytes could spell one.
  const auto token =
      rc::gen::map(rc::gen::oneOf(rc::gen::inRange(256, 259), rc::gen::inRange(int{'a'}, int{'z'})),
                   [](int raw) { return TokenId{raw}; });
  const auto tokens = *rc::gen::container<std::vector<TokenId>>(token);
  RC_ASSERT(vocabulary->tokenize(vocabulary->detokenize(tokens), false, true) == tokens);
}

TEST(FakeVocabularyDeathTest, TokensOutsideEndTheProcess) {
  const auto vocabulary = make_vocabulary();
  EXPECT_DEATH((void)vocabulary->piece(TokenId{n_vocab}), "a token outside the vocabulary");
  EXPECT_DEATH((void)vocabulary->piece(TokenId{-1}), "a token outside the vocabulary");
  EXPECT_DEATH((void)vocabulary->piece_with_special(TokenId{n_vocab}), "outside the vocabulary");
}

TEST(FakeVocabulary, TemplateWritesTheTurns) {
  const auto vocabulary = make_vocabulary();
  ChatInput input;
  input.messages_json =
      R"([{"role": "system", "content": "be brief"}, {"role":"user","content":"say \"hi\""}])";
  const auto prompt = vocabulary->apply_template(input);
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(prompt->prompt,
            "<turn>system\nbe brief</turn><turn>user\nsay \"hi\"</turn><turn>assistant\n");
  EXPECT_EQ(prompt->parser->parse("any reply", false).content, "any reply");
  input.add_generation_prompt = false;
  input.messages_json = "[]";
  EXPECT_EQ(vocabulary->apply_template(input)->prompt, "");
  input.messages_json = R"([{"role": "user")";
  EXPECT_FALSE(vocabulary->apply_template(input).ok());
}

TEST(FakeSampler, ForcedTextComesWholeThenTheEnd) {
  EXPECT_EQ(reply(forced("The sky"), 9), "The sky<eos><eos>");
  EXPECT_EQ(reply(forced("a\\nb\\\"c\\\\d"), 8), "a\nb\"c\\d<eos>");
  EXPECT_EQ(reply(forced(""), 1), "<eos>");
  EXPECT_EQ(reply(forced("\xC3\xA4"), 3), "\xC3\xA4<eos>");
}

TEST(FakeSampler, OtherGrammarsAreRefusedNotIgnored) {
  const auto vocabulary = make_vocabulary();
  for (const char* grammar : {"root ::= [a-z]+", "root ::= \"", "nonsense"}) {
    SamplingParams params;
    params.grammar = grammar;
    const auto made = vocabulary->make_sampler(params, {});
    ASSERT_FALSE(made.ok()) << grammar;
    EXPECT_NE(made.error().message.find("grammar"), std::string::npos);
  }
  EXPECT_FALSE(vocabulary->grammar_from_schema("{}").ok());
}

TEST(FakeSampler, DeadEndFailsAtTheFirstToken) {
  Rig rig;
  SamplingParams params;
  params.grammar = "root ::= ()";
  const auto sampler = rig.sampler(params);
  const GroupResult result = rig.compute(Seat(0), "x", sampler.get());
  EXPECT_TRUE(result.sampler_failed);
  EXPECT_EQ(result.sampled, std::nullopt);
  EXPECT_EQ(result.computed, Tokens(1));
}

TEST(FakeSampler, SeedMattersOnlyAboveTemperatureZero) {
  SamplingParams params = Rig::greedy();
  params.seed = 1;
  const std::string greedy = reply(params, 20);
  params.seed = 2;
  EXPECT_EQ(reply(params, 20), greedy);
  params.temperature = 1.0F;
  const std::string warm = reply(params, 20);
  EXPECT_NE(warm, greedy);
  EXPECT_EQ(reply(params, 20), warm);
  params.seed = 3;
  EXPECT_NE(reply(params, 20), warm);
}

TEST(FakeSampler, SeedThatNobodyChoseIsDrawnAndTold) {
  const Rig rig;
  std::vector<std::uint32_t> seeds;
  for (int i = 0; i < 4; ++i) seeds.push_back(rig.sampler({})->seed());
  EXPECT_FALSE(seeds[0] == seeds[1] && seeds[1] == seeds[2] && seeds[2] == seeds[3]);
  SamplingParams params;
  params.seed = 42;
  EXPECT_EQ(rig.sampler(params)->seed(), 42U);
}

TEST(FakeSampler, CloneGoesOnFromTheSameStateOnItsOwn) {
  SamplingParams params;
  params.seed = 9;
  Rig rig;
  const auto original = rig.sampler(params);
  (void)rig.reply(Seat(0), "prompt", 5, *original);
  const auto clone = original->clone();
  EXPECT_EQ(clone->seed(), 9U);
  ASSERT_EQ(rig.engine.share_prefix(Seat(0), Seat(1), rig.engine.position(Seat(0))),
            EditOutcome::done);
  const auto first = rig.reply(Seat(0), "x", 10, *original);
  EXPECT_EQ(rig.reply(Seat(1), "x", 10, *clone), first);
}

TEST(FakeSampler, CloneOfAForcedOneKnowsHowFarItIs) {
  Rig rig;
  const auto original = rig.sampler(forced("abcdef"));
  (void)rig.reply(Seat(0), "p", 3, *original);
  const auto clone = original->clone();
  EXPECT_EQ(rig.vocabulary->detokenize(rig.reply(Seat(1), "p", 4, *clone)), "def<eos>");
  EXPECT_EQ(rig.vocabulary->detokenize(rig.reply(Seat(2), "p", 2, *original)), "de");
}

TEST(FakeSampler, RepliesEndByChanceUnlessToldNotTo) {
  FakeModelSpec spec;
  spec.eos_every = 4;
  EXPECT_NE(reply(Rig::greedy(), 100, spec).find("<eos>"), std::string::npos);
  SamplingParams endless = Rig::greedy();
  endless.ignore_eos = true;
  EXPECT_EQ(reply(endless, 100, spec).find("<eos>"), std::string::npos);
  EXPECT_EQ(reply(Rig::greedy(), 100).find("<eos>"), std::string::npos);
}

TEST(FakeSampler, ProbabilitiesAreSortedFiniteAndAsManyAsAskedFor) {
  Rig rig;
  SamplingParams params = Rig::greedy();
  params.n_probs = 5;
  const auto sampler = rig.sampler(params);
  const GroupResult result = rig.compute(Seat(0), "x", sampler.get());
  const Sampled& sampled = result.sampled.value();
  ASSERT_EQ(sampled.top.size(), 5U);
  EXPECT_EQ(sampled.top[0].token, sampled.token);
  EXPECT_EQ(sampled.top[0].value, sampled.logprob);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_LT(sampled.top[i].value, sampled.top[i - 1].value);

  const auto plain = rig.sampler();
  EXPECT_TRUE(rig.compute(Seat(1), "x", plain.get()).sampled->top.empty());
  params.n_probs = 100'000;
  const auto all = rig.sampler(params);
  EXPECT_EQ(rig.compute(Seat(2), "x", all.get()).sampled->top.size(),
            static_cast<std::size_t>(n_vocab));
}

}  // namespace
}  // namespace fermata::engine::fake
