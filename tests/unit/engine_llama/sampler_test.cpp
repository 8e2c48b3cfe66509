// Samplers, seen through an engine: what is chosen, what is reported, what a copy does.
#include "base/random.h"
#include "engine/engine.h"
#include "engine/llama/bare_loop.h"
#include "engine/vocabulary.h"
#include "support/llama_models.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::engine::llama {
namespace {

using fermata::testing::tiny_model_path;
using fermata::testing::tiny_vocabulary;

EngineOptions one_thread() {
  EngineOptions options;
  options.threads = 1;
  options.poll = 0;
  return options;
}

// One sequence on the tiny chat model.
class Samplers : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = fermata::testing::load_test_model(tiny_model_path());
    vocabulary_ = tiny_vocabulary();
    Geometry geometry;
    geometry.n_ctx = Tokens(1024);
    geometry.n_parallel = 1;
    auto built = model_->build(geometry, one_thread());
    ASSERT_TRUE(built.ok()) << built.error().message;
    engine_ = std::move(built).value();
    prompt_ = chat("Count from 1 to 20.");
  }

  std::vector<TokenId> chat(const std::string& text) const {
    return vocabulary_->tokenize(
        "<|im_start|>user\n" + text + "<|im_end|>\n<|im_start|>assistant\n", true, true);
  }

  std::unique_ptr<Sampler> make(const SamplingParams& params) const {
    auto made = vocabulary_->make_sampler(params, prompt_);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(made).value();
  }

  GroupResult step(const std::vector<TokenId>& tokens, Sampler* sampler) {
    const RowGroup group{
        .seat = Seat(0), .first = engine_->position(Seat(0)), .tokens = tokens, .sampler = sampler};
    GroupResult result;
    EXPECT_EQ(engine_->step({&group, 1}, {&result, 1}), StepOutcome::done);
    return result;
  }

  std::vector<Sampled> follow(Sampler* sampler, std::vector<TokenId> next, int most) {
    std::vector<Sampled> out;
    while (static_cast<int>(out.size()) < most) {
      const GroupResult result = step(next, sampler);
      if (!result.sampled) break;
      out.push_back(*result.sampled);
      if (vocabulary_->ends_generation(out.back().token)) break;
      next = {out.back().token};
    }
    return out;
  }

  // From an empty seat.
  std::vector<Sampled> generate(Sampler* sampler, int most) {
    engine_->clear(Seat(0));
    return follow(sampler, prompt_, most);
  }
  std::vector<Sampled> generate(const SamplingParams& params, int most) {
    const auto sampler = make(params);
    return generate(sampler.get(), most);
  }

  std::string text(const std::vector<Sampled>& sampled) const {
    std::string out;
    for (const Sampled& one : sampled) out += vocabulary_->piece(one.token);
    return out;
  }
  static std::vector<TokenId> tokens(const std::vector<Sampled>& sampled) {
    std::vector<TokenId> out;
    for (const Sampled& one : sampled) out.push_back(one.token);
    return out;
  }

  std::shared_ptr<Model> model_;
  std::shared_ptr<Vocabulary> vocabulary_;
  std::unique_ptr<Engine> engine_;
  std::vector<TokenId> prompt_;
};

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0.0F;
  return params;
}

SamplingParams warm(std::uint32_t seed) {
  SamplingParams params;
  params.temperature = 6.0F;
  params.top_k = 0;
  params.top_p = 1.0F;
  params.min_p = 0.0F;
  params.seed = seed;
  return params;
}

TEST_F(Samplers, GreedyCountsAsTheModelLearned) {
  EXPECT_EQ(text(generate(greedy(), 200)),
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20");
}

TEST_F(Samplers, ASeedGivesTheSameTokensAgain) {
  const auto once = tokens(generate(warm(7), 40));
  EXPECT_EQ(tokens(generate(warm(7), 40)), once);
  EXPECT_NE(tokens(generate(warm(8), 40)), once);
}

TEST_F(Samplers, ASeedNobodyChoseIsDrawnAndReported) {
  std::set<std::uint32_t> seeds;
  for (int i = 0; i < 8; ++i) seeds.insert(make(warm(seed_random))->seed());
  EXPECT_EQ(seeds.count(seed_random), 0U);
  EXPECT_GT(seeds.size(), 6U);
  const auto drawn = make(warm(seed_random));
  const auto once = tokens(generate(drawn.get(), 30));
  EXPECT_EQ(tokens(generate(warm(drawn->seed()), 30)), once) << "the reported seed is the one used";
  EXPECT_EQ(make(warm(123))->seed(), 123U);
}

TEST_F(Samplers, ACopyGoesOnAsTheOriginalWould) {
  SamplingParams grammar = warm(4);
  grammar.grammar = R"(root ::= ([a-z]+ " ")* )";
  SamplingParams penalties = warm(5);
  penalties.repeat_penalty = 1.4F;
  penalties.dry_multiplier = 0.8F;
  SamplingParams mirostat = warm(6);
  mirostat.mirostat = 2;
  for (SamplingParams params : {warm(3), grammar, penalties, mirostat}) {
    params.ignore_eos = true;
    const auto original = make(params);
    const auto begun = generate(original.get(), 10);
    ASSERT_EQ(begun.size(), 10U);
    const Tokens held = engine_->position(Seat(0));
    const auto copy = original->clone();
    EXPECT_EQ(copy->seed(), original->seed());
    const auto by_original = tokens(follow(original.get(), {begun.back().token}, 15));
    ASSERT_EQ(engine_->truncate(Seat(0), held), EditOutcome::done);
    EXPECT_EQ(tokens(follow(copy.get(), {begun.back().token}, 15)), by_original);
  }
}

TEST_F(Samplers, LogProbabilitiesAreOfTheWholeDistribution) {
  SamplingParams params = greedy();
  params.n_probs = vocabulary_->size();
  const auto first = generate(params, 1);
  ASSERT_EQ(first.size(), 1U);
  const auto& top = first[0].top;
  ASSERT_EQ(top.size(), static_cast<std::size_t>(vocabulary_->size()));
  EXPECT_EQ(top[0].token, first[0].token);
  EXPECT_FLOAT_EQ(top[0].value, first[0].logprob);
  double sum = 0.0;
  std::set<TokenId> distinct;
  for (std::size_t i = 0; i < top.size(); ++i) {
    EXPECT_TRUE(std::isfinite(top[i].value));
    EXPECT_LE(top[i].value, 0.0F);
    EXPECT_LE(top[i].value, i > 0 ? top[i - 1].value : 0.0F);
    distinct.insert(top[i].token);
    sum += std::exp(static_cast<double>(top[i].value));
  }
  EXPECT_NEAR(sum, 1.0, 1e-4);
  EXPECT_EQ(distinct.size(), top.size());
}

TEST_F(Samplers, ReportingChangesNoChoice) {
  SamplingParams plain = warm(11);
  SamplingParams reporting = plain;
  reporting.n_probs = 5;
  SamplingParams after = reporting;
  after.post_sampling_probs = true;
  const auto expected = generate(plain, 30);
  EXPECT_TRUE(expected[0].top.empty());
  EXPECT_EQ(tokens(generate(reporting, 30)), tokens(expected));
  EXPECT_EQ(tokens(generate(after, 30)), tokens(expected));
}

TEST_F(Samplers, AfterSamplingProbabilitiesAreThoseOfTheCandidates) {
  SamplingParams params = warm(12);
  params.temperature = 0.7F;
  params.top_k = 4;
  params.n_probs = 10;
  params.post_sampling_probs = true;
  for (const Sampled& one : generate(params, 20)) {
    EXPECT_LE(one.top.size(), 4U);
    double sum = 0.0;
    bool has_chosen = false;
    for (const TokenProbability& p : one.top) {
      EXPECT_GT(p.value, 0.0F);
      EXPECT_LE(p.value, 1.0F);
      sum += p.value;
      has_chosen = has_chosen || (p.token == one.token && p.value == one.logprob);
    }
    EXPECT_TRUE(has_chosen);
    EXPECT_LE(sum, 1.0001);
  }
}

TEST_F(Samplers, ABiasForbidsAToken) {
  const auto free_choice = generate(greedy(), 1);
  SamplingParams params = greedy();
  params.logit_bias.emplace_back(free_choice[0].token, -std::numeric_limits<float>::infinity());
  EXPECT_NE(generate(params, 1)[0].token, free_choice[0].token);
  params.logit_bias = {{TokenId{100}, 1000.0F}};
  EXPECT_EQ(generate(params, 1)[0].token, TokenId{100});
}

TEST_F(Samplers, IgnoringTheEndGoesOn) {
  SamplingParams params = greedy();
  const auto ended = generate(params, 200);
  EXPECT_TRUE(vocabulary_->ends_generation(ended.back().token));
  params.ignore_eos = true;
  const auto endless = generate(params, 200);
  EXPECT_EQ(endless.size(), 200U);
  for (const Sampled& one : endless) EXPECT_FALSE(vocabulary_->ends_generation(one.token));
}

TEST_F(Samplers, AGrammarHoldsToTheEnd) {
  SamplingParams params = warm(21);
  params.grammar = R"(root ::= "<" [0-9]{3} ">")";
  const auto said = generate(params, 30);
  const std::string out = text(said);
  ASSERT_EQ(out.size(), 5U) << out;
  EXPECT_EQ(out.front(), '<');
  EXPECT_EQ(out.back(), '>');
  EXPECT_TRUE(vocabulary_->ends_generation(said.back().token)) << "a finished grammar ends it";
}

TEST_F(Samplers, AGrammarThatWantsToGoOnWithoutEndTokensIsADeadEnd) {
  SamplingParams params = greedy();
  params.grammar = R"(root ::= "ab")";
  params.ignore_eos = true;
  const auto sampler = make(params);
  const auto said = generate(sampler.get(), 10);
  EXPECT_EQ(text(said), "ab");
  const GroupResult after = step({said.back().token}, sampler.get());
  EXPECT_TRUE(after.sampler_failed);
  EXPECT_TRUE(step({said.back().token}, sampler.get()).sampler_failed) << "and stays one";
  EXPECT_TRUE(step({said.back().token}, sampler->clone().get()).sampler_failed);
}

TEST_F(Samplers, ALazyGrammarWaitsForItsWord) {
  SamplingParams params = greedy();
  params.grammar = R"(root ::= "5" "!"{4})";
  params.grammar_lazy = true;
  params.grammar_triggers = {{GrammarTrigger::Kind::word, "5", TokenId{-1}}};
  EXPECT_EQ(text(generate(params, 60)), "1, 2, 3, 4, 5!!!!");
}

TEST_F(Samplers, PenaltiesSeeThePrompt) {
  SamplingParams params = greedy();
  const auto plain = generate(params, 1);
  const std::set<TokenId> seen(prompt_.begin(), prompt_.end());
  ASSERT_EQ(seen.count(plain[0].token), 1U) << "\"1\", of \"from 1 to 20\"";
  params.presence_penalty = 50.0F;
  params.repeat_last_n = -1;
  const auto penalised = generate(params, 1);
  EXPECT_NE(plain[0].token, penalised[0].token);
  EXPECT_EQ(seen.count(penalised[0].token), 0U);
}

TEST_F(Samplers, EverySamplerOfTheListRuns) {
  SamplingParams params = warm(31);
  params.samplers = {SamplerKind::adaptive_p, SamplerKind::infill, SamplerKind::xtc};
  params.samplers.insert(
      params.samplers.begin(),
      {SamplerKind::penalties, SamplerKind::dry, SamplerKind::top_n_sigma, SamplerKind::top_k,
       SamplerKind::typical_p, SamplerKind::top_p, SamplerKind::min_p, SamplerKind::temperature});
  params.top_k = 40;
  params.typical_p = 0.9F;
  params.top_n_sigma = 2.0F;
  params.xtc_probability = 0.5F;
  params.dry_multiplier = 0.5F;
  params.dynatemp_range = 0.5F;
  params.adaptive_target = 0.4F;
  EXPECT_GE(generate(params, 20).size(), 1U);
  for (const int mirostat : {1, 2}) {
    SamplingParams other = warm(32);
    other.mirostat = mirostat;
    EXPECT_GE(generate(other, 20).size(), 1U);
  }
}

TEST_F(Samplers, TheEngineChoosesWhatABareLoopChooses) {
  constexpr int count = 60;
  for (SamplingParams params : {greedy(), warm(41)}) {
    params.ignore_eos = true;
    const auto figures =
        run_bare_loop(tiny_model_path(), prompt_, Tokens(count), one_thread(), params);
    ASSERT_TRUE(figures.ok()) << figures.error();
    EXPECT_EQ(figures->decoded, Tokens(count));
    EXPECT_GT(figures->decode_tokens_per_second, 0.0);
    EXPECT_EQ(figures->tokens, tokens(generate(params, count)));
  }
  const SamplingParams first = greedy();
  const auto both = run_bare_loop(tiny_model_path(), prompt_, Tokens(8), one_thread(), first, 2);
  ASSERT_TRUE(both.ok()) << both.error();
  ASSERT_EQ(both->tokens.size(), 16U);
  EXPECT_TRUE(std::equal(both->tokens.begin(), both->tokens.begin() + 8, both->tokens.begin() + 8));
  EXPECT_FALSE(run_bare_loop("absent.gguf", prompt_, Tokens(1), one_thread(), greedy()).ok());
}

}  // namespace
}  // namespace fermata::engine::llama
