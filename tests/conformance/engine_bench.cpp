#include "base/random.h"
#include "conformance/engine_conformance.h"

#include <algorithm>
#include <cmath>

namespace fermata::engine {

Bench::Bench(const EngineFactory& factory, std::int64_t n_ctx, std::int32_t n_parallel,
             std::uint64_t seed)
    : model_(factory.model(seed)), vocabulary_(factory.vocabulary()) {
  Geometry geometry;
  geometry.n_ctx = Tokens(n_ctx);
  geometry.n_parallel = n_parallel;
  geometry.layout = factory.layout;
  EngineOptions options;
  options.n_batch = Tokens(64);
  options.n_ubatch = Tokens(16);
  options.threads = 1;
  options.poll = 0;
  auto built = model_->build(geometry, options);
  EXPECT_TRUE(built.ok()) << built.error().message;
  engine_ = std::move(built).value();
}

std::unique_ptr<Sampler> Bench::greedy() const {
  SamplingParams params;
  params.temperature = 0.0F;
  params.ignore_eos = true;
  params.n_probs = 2;
  params.seed = 1;
  auto made = vocabulary_->make_sampler(params, {});
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

StepOutcome Bench::step(const std::vector<RowGroup>& groups, std::vector<GroupResult>& results) {
  results.assign(groups.size(), GroupResult{});
  return engine_->step(groups, results);
}

Sampled Bench::feed(Seat seat, const Text& tokens, std::int64_t chunk) {
  const std::unique_ptr<Sampler> sampler = greedy();
  const auto most = static_cast<std::size_t>(std::min(chunk, engine_->limits().batch.value));
  std::vector<GroupResult> results;
  for (std::size_t at = 0; at < tokens.size(); at += most) {
    const std::size_t rows = std::min(most, tokens.size() - at);
    const bool last = at + rows == tokens.size();
    const RowGroup group{seat, engine_->position(seat), std::span(tokens).subspan(at, rows),
                         last ? sampler.get() : nullptr, nullptr};
    const StepOutcome outcome = step({group}, results);
    EXPECT_EQ(outcome, StepOutcome::done);
    EXPECT_EQ(results[0].computed, Tokens(static_cast<std::int64_t>(rows)));
    EXPECT_EQ(results[0].sampled.has_value(), last);
    if (outcome != StepOutcome::done) return {};
  }
  return results[0].sampled.value_or(Sampled{});
}

std::vector<Sampled> Bench::follow(Seat seat, const Sampled& first, int count) {
  std::vector<Sampled> out{first};
  while (static_cast<int>(out.size()) < count && raw(out.back().token) >= 0) {
    out.push_back(feed(seat, {out.back().token}));
  }
  return out;
}

std::vector<Sampled> Bench::complete(Seat seat, const Text& prompt, int count) {
  return follow(seat, feed(seat, prompt), count);
}

Text some_text(std::uint64_t seed, std::int64_t count) {
  Random random(seed);
  Text out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(TokenId{static_cast<std::int32_t>(random.between(32, 126))});
  }
  return out;
}

::testing::AssertionResult same(const std::vector<Sampled>& a, const std::vector<Sampled>& b) {
  return alike(a, b, 0.0F);
}

::testing::AssertionResult alike(const std::vector<Sampled>& a, const std::vector<Sampled>& b,
                                 float tolerance) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "other lengths";
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i].logprob - b[i].logprob);
    if (difference > tolerance) {
      return ::testing::AssertionFailure()
             << "log-probability " << i << " differs by " << difference;
    }
    if (a[i].token == b[i].token) continue;
    // The two best may change places when they weigh the same; what follows is another text.
    const bool is_tie = a[i].top.size() >= 2 && b[i].top.size() >= 2 &&
                        a[i].top[1].token == b[i].token && b[i].top[1].token == a[i].token &&
                        a[i].top[0].value - a[i].top[1].value <= tolerance;
    if (is_tie) break;
    return ::testing::AssertionFailure()
           << "token " << i << ": " << raw(a[i].token) << " and " << raw(b[i].token);
  }
  return ::testing::AssertionSuccess();
}

}  // namespace fermata::engine
