// A loop of llama_decode and the library's sampler with nothing around it: what this machine can do
// with a model, for `fermata bench` to compare the server with.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "core/sampling_params.h"
#include "engine/model.h"

#include <span>
#include <string>
#include <vector>

namespace fermata::engine::llama {

struct BareLoopFigures {
  Tokens prompt;
  Micros prompt_time;
  Tokens decoded;  // Of each sequence.
  Micros decode_time;
  double decode_tokens_per_second = 0.0;  // Of all.
  std::vector<TokenId> tokens;  // What was chosen; of several sequences one after another.
};

// Computes the prompt in batches of options.n_batch, then `count` tokens one by one, with a context
// of its own, the threads of `options` and the chain of `params`. Several sequences compute the
// same prompt one after another, then a token each in every step. Weights are read, not mapped.
// End tokens do not end it. REQUIRES: start_library() was ok; prompt not empty; count >= 1;
// sequences from 1 to n_parallel_max. Error: one line.
Result<BareLoopFigures, std::string> run_bare_loop(const std::string& path,
                                                   std::span<const TokenId> prompt, Tokens count,
                                                   const EngineOptions& options,
                                                   const SamplingParams& params,
                                                   std::int32_t sequences = 1);

}  // namespace fermata::engine::llama
