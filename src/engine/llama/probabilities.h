// Log-probabilities of a row of logits.
#pragma once

#include "engine/engine.h"

#include <cstdint>
#include <span>

#include <llama.h>

namespace fermata::engine::llama {

bool has_nan(std::span<const float> logits);

// Fills in `logprob` of the token and the `count` best, from the softmax over all logits. Values
// are finite: a token that cannot occur gets the lowest float.
void report_log_probabilities(std::span<const float> logits, std::int32_t count, Sampled& sampled);

// The same as probabilities, among the candidates that the samplers left (sorted, best first).
void report_candidates(const llama_token_data_array& candidates, std::int32_t count,
                       Sampled& sampled);

}  // namespace fermata::engine::llama
