// The fake engine's and vocabulary's common secret: how a hash of cells becomes a token.
#pragma once

#include "core/sampling_params.h"
#include "engine/engine.h"

#include <optional>
#include <string>

namespace fermata::engine::fake {

class FakeSampler final : public Sampler {
 public:
  struct Options {
    std::uint32_t seed = 0;
    bool greedy = false;
    bool ignore_eos = false;
    bool dead_end = false;
    std::int32_t n_probs = 0;
    std::optional<std::string> forced;  // The whole reply, then eos.
  };
  explicit FakeSampler(Options options) : options_(std::move(options)) {}

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<FakeSampler>(*this); }
  std::uint32_t seed() const override { return options_.seed; }
  bool end_thoughts() override { return false; }

  // The next token of a sequence whose cells hash to `content`; empty at a grammar's dead end.
  // One in `eos_every` (0: none) unforced tokens is the end.
  std::optional<Sampled> next(std::uint64_t content, std::int32_t eos_every);

 private:
  Options options_;
  std::uint64_t accepted_ = 0;
};

}  // namespace fermata::engine::fake
