// The sampler chain of libllama-common for one sequence, behind guards: some states of the
// library's samplers end the process when they are touched again.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "core/sampling_params.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "engine/vocabulary.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <llama.h>
#include <sampling.h>

namespace fermata::engine::llama {

// What the library's chain is made from; also for a bare decode loop. The seed is never random.
// Error: a value that the library would abort on, hang on or misread.
Result<common_params_sampling, SamplerFault> library_params(const llama_model* model,
                                                            const SamplingParams& params);

class LlamaSampler final : public Sampler {
 public:
  static Result<std::unique_ptr<Sampler>, SamplerFault> make(const llama_model* model,
                                                             const SamplingParams& params,
                                                             std::span<const TokenId> prompt);

  // adaptive_p is the exception to "in the same state": the library starts the random numbers of a
  // copy afresh.
  std::unique_ptr<Sampler> clone() const override;
  std::uint32_t seed() const override { return seed_; }
  bool end_thoughts() override;

  // Chooses from row `row` of the last llama_decode and accepts the choice. Empty: no token is left
  // to choose (a grammar's dead end, broken logits); it stays empty for ever.
  std::optional<Sampled> sample(llama_context* context, std::int32_t row);

 private:
  LlamaSampler(common_sampler_ptr chain, std::uint32_t seed, std::int32_t n_probs, bool post)
      : chain_(std::move(chain)), seed_(seed), n_probs_(n_probs), post_sampling_(post) {}
  std::optional<TokenId> choose(llama_context* context, std::int32_t row, const float* logits);

  common_sampler_ptr chain_;
  std::uint32_t seed_;
  std::int32_t n_probs_;
  bool post_sampling_;
  bool failed_ = false;
};

}  // namespace fermata::engine::llama
