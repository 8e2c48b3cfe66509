// What every engine must do, whatever computes behind it. One suite, instantiated for the fake and
// for libllama, for every kind of memory and both layouts.
#pragma once

#include "engine/engine.h"
#include "engine/model.h"
#include "engine/vocabulary.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::engine {

struct EngineFactory {
  std::string name;  // "llama_dense_pooled": letters, digits and underscores.
  MemoryKind kind = MemoryKind::attention;
  Layout layout = Layout::pooled;
  // Two models of the same shape and other weights, by seed 1 and 2. Called lazily, kept alive by
  // the caller while its engines live.
  std::function<std::shared_ptr<Model>(std::uint64_t seed)> model;
  std::function<std::shared_ptr<Vocabulary>()> vocabulary;
  std::string dead_end_grammar;  // Accepted by make_sampler; no token satisfies it.
  // Largest difference of a log-probability between two ways to compute the same tokens in other
  // shapes; 0: none, tokens and values are equal.
  float shape_tolerance = 0.0F;

  friend void PrintTo(const EngineFactory& factory, std::ostream* out) { *out << factory.name; }
};

using Text = std::vector<TokenId>;

// One engine with its model, and the few moves that tests are made of. A failed expectation of its
// own is a test failure.
class Bench {
 public:
  Bench(const EngineFactory& factory, std::int64_t n_ctx, std::int32_t n_parallel,
        std::uint64_t seed = 1);

  Engine& engine() { return *engine_; }
  Model& model() { return *model_; }
  Vocabulary& vocabulary() { return *vocabulary_; }

  // Rows behind what the seat holds. `tokens` is borrowed.
  RowGroup rows(Seat seat, const Text& tokens, Sampler* sampler = nullptr,
                const std::atomic<bool>* cancelled = nullptr) const {
    return RowGroup{seat, engine_->position(seat), tokens, sampler, cancelled};
  }
  std::unique_ptr<Sampler> greedy() const;
  // Computes the tokens behind what the seat holds, in steps of at most `chunk` rows.
  Sampled feed(Seat seat, const Text& tokens, std::int64_t chunk = 1 << 20);
  // What follows: `count` tokens, each chosen greedily and computed alone. `first` is chosen
  // already; the last one is chosen, not computed.
  std::vector<Sampled> follow(Seat seat, const Sampled& first, int count);
  // The same for tokens that the seat does not hold yet.
  std::vector<Sampled> complete(Seat seat, const Text& prompt, int count);
  StepOutcome step(const std::vector<RowGroup>& groups, std::vector<GroupResult>& results);

 private:
  std::shared_ptr<Model> model_;
  std::shared_ptr<Vocabulary> vocabulary_;
  std::unique_ptr<Engine> engine_;
};

// Plain text tokens, different for each seed.
Text some_text(std::uint64_t seed, std::int64_t count);

// Equal to the last bit.
::testing::AssertionResult same(const std::vector<Sampled>& a, const std::vector<Sampled>& b);
// Equal but for what another shape of computation changes.
::testing::AssertionResult alike(const std::vector<Sampled>& a, const std::vector<Sampled>& b,
                                 float tolerance);

class EngineConformance : public ::testing::TestWithParam<EngineFactory> {
 protected:
  bool pooled_cells() const {
    return GetParam().layout == Layout::pooled && GetParam().kind != MemoryKind::recurrent;
  }
  Bench bench(std::int64_t n_ctx = 1024, std::int32_t n_parallel = 4,
              std::uint64_t seed = 1) const {
    return Bench(GetParam(), n_ctx, n_parallel, seed);
  }
};

}  // namespace fermata::engine
