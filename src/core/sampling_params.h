// How the next token of a sequence is chosen. Plain values, checked at the edge where a client's
// JSON becomes a request; names and defaults are llama-server's.
#pragma once

#include "base/types.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fermata {

// A seed nobody chose: the engine draws one and reports it.
inline constexpr std::uint32_t seed_random = 0xFFFFFFFF;

enum class SamplerKind : std::uint8_t {
  penalties,
  dry,
  top_n_sigma,
  top_k,
  typical_p,
  top_p,
  min_p,
  xtc,
  temperature,
  infill,
  adaptive_p,
};

// Where a grammar came from decides whether the template's generation prompt is fed to it.
enum class GrammarOrigin : std::uint8_t { none, client, json_schema, tool_calls };

// What starts a lazy grammar. `value` is a word, a token's text or a pattern, as `kind` says.
struct GrammarTrigger {
  enum class Kind : std::uint8_t { token, word, pattern, pattern_full };
  Kind kind = Kind::word;
  std::string value;
  TokenId token{-1};
};

struct SamplingParams {
  std::uint32_t seed = seed_random;
  std::int32_t min_keep = 0;
  std::int32_t top_k = 40;
  float top_p = 0.95F;
  float min_p = 0.05F;
  float top_n_sigma = -1.0F;
  float xtc_probability = 0.0F;
  float xtc_threshold = 0.1F;
  float typical_p = 1.0F;
  float temperature = 0.8F;
  float dynatemp_range = 0.0F;
  float dynatemp_exponent = 1.0F;
  std::int32_t repeat_last_n = 64;
  float repeat_penalty = 1.0F;
  float frequency_penalty = 0.0F;
  float presence_penalty = 0.0F;
  float dry_multiplier = 0.0F;
  float dry_base = 1.75F;
  std::int32_t dry_allowed_length = 2;
  std::int32_t dry_penalty_last_n = 64;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  std::int32_t mirostat = 0;
  float mirostat_tau = 5.0F;
  float mirostat_eta = 0.1F;
  float adaptive_target = -1.0F;
  float adaptive_decay = 0.9F;
  bool ignore_eos = false;
  std::vector<SamplerKind> samplers = {
      SamplerKind::penalties, SamplerKind::dry,       SamplerKind::top_n_sigma,
      SamplerKind::top_k,     SamplerKind::typical_p, SamplerKind::top_p,
      SamplerKind::min_p,     SamplerKind::xtc,       SamplerKind::temperature};
  std::vector<std::pair<TokenId, float>> logit_bias;

  std::string grammar;  // GBNF; empty: none.
  GrammarOrigin grammar_origin = GrammarOrigin::none;
  bool grammar_lazy = false;
  std::vector<GrammarTrigger> grammar_triggers;
  std::vector<TokenId> preserved_tokens;
  std::string generation_prompt;  // What the template already wrote of the reply.

  // Where thoughts begin and end; empty: the model has none. A lazy grammar waits for their end.
  std::string reasoning_start;
  std::vector<std::string> reasoning_ends;
  std::int32_t reasoning_budget = -1;    // Tokens of thoughts; -1: no limit.
  std::string reasoning_budget_message;  // Comes before the end that is then forced.
  bool reasoning_control = false;        // Sampler::end_thoughts() may be called.

  std::int32_t n_probs = 0;  // Log-probabilities to report for each token; 0: none.
  bool post_sampling_probs = false;
};

}  // namespace fermata
