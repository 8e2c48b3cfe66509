// One fake engine and its vocabulary, asked in text.
#pragma once

#include "base/check.h"
#include "engine/fake/fake_engine.h"
#include "engine/fake/fake_vocabulary.h"

#include <string>

namespace fermata::engine::fake {

struct Rig {
  std::unique_ptr<Vocabulary> vocabulary = make_vocabulary();
  FakeEngine engine;

  explicit Rig(const FakeModelSpec& spec = {}, const Geometry& geometry = {.n_ctx = Tokens(256)},
               const EngineOptions& options = {})
      : engine(spec, geometry, options) {}

  std::unique_ptr<Sampler> sampler(const SamplingParams& params = greedy()) const {
    auto made = vocabulary->make_sampler(params, {});
    FERMATA_CHECK(made.ok(), "the test asks for a sampler that the fake does not know");
    return std::move(made).value();
  }
  static SamplingParams greedy() {
    SamplingParams params;
    params.temperature = 0.0F;
    return params;
  }

  std::vector<TokenId> tokens(const std::string& text) const {
    return vocabulary->tokenize(text, false, true);
  }
  // Computes `text` on the seat; with a sampler what it chose.
  GroupResult compute(Seat seat, const std::string& text, Sampler* sampler = nullptr) {
    return compute(seat, tokens(text), sampler);
  }
  GroupResult compute(Seat seat, const std::vector<TokenId>& tokens, Sampler* sampler = nullptr) {
    const RowGroup group{seat, engine.position(seat), tokens, sampler, nullptr};
    GroupResult result;
    FERMATA_CHECK(engine.step({&group, 1}, {&result, 1}) == StepOutcome::done, "a step failed");
    return result;
  }
  // The next n tokens, each fed back.
  std::vector<TokenId> reply(Seat seat, const std::string& prompt, int n, Sampler& sampler) {
    std::vector<TokenId> out;
    std::vector<TokenId> next = tokens(prompt);
    for (int i = 0; i < n; ++i) {
      const GroupResult result = compute(seat, next, &sampler);
      out.push_back(result.sampled.value().token);
      next = {out.back()};
    }
    return out;
  }
  std::vector<TokenId> greedy_reply(Seat seat, const std::string& prompt, int n = 8) {
    const auto chooser = sampler();
    return reply(seat, prompt, n, *chooser);
  }
};

}  // namespace fermata::engine::fake
