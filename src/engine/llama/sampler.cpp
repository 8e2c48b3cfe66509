#include "engine/llama/sampler.h"

#include "base/check.h"
#include "base/random.h"
#include "engine/llama/grammar_guard.h"
#include "engine/llama/probabilities.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include <common.h>

namespace fermata::engine::llama {
namespace {

// Rings of the last tokens are allocated at once; more than this no window of today has.
constexpr std::int32_t last_tokens_max = 1 << 18;
constexpr std::size_t samplers_max = 64;
constexpr std::size_t breakers_max = 64;  // Each walks over the whole vocabulary.
constexpr std::size_t breaker_bytes_max = 256;
constexpr std::size_t triggers_max = 1024;
constexpr std::size_t trigger_bytes_max = 4096;
constexpr std::int32_t infill_top_k_max = 1024;

SamplerFault fault(const std::string& field, const std::string& what) {
  return SamplerFault{field + ": " + what, field};
}

common_sampler_type library_kind(SamplerKind kind) {
  switch (kind) {
    case SamplerKind::penalties:
      return COMMON_SAMPLER_TYPE_PENALTIES;
    case SamplerKind::dry:
      return COMMON_SAMPLER_TYPE_DRY;
    case SamplerKind::top_n_sigma:
      return COMMON_SAMPLER_TYPE_TOP_N_SIGMA;
    case SamplerKind::top_k:
      return COMMON_SAMPLER_TYPE_TOP_K;
    case SamplerKind::typical_p:
      return COMMON_SAMPLER_TYPE_TYPICAL_P;
    case SamplerKind::top_p:
      return COMMON_SAMPLER_TYPE_TOP_P;
    case SamplerKind::min_p:
      return COMMON_SAMPLER_TYPE_MIN_P;
    case SamplerKind::xtc:
      return COMMON_SAMPLER_TYPE_XTC;
    case SamplerKind::temperature:
      return COMMON_SAMPLER_TYPE_TEMPERATURE;
    case SamplerKind::infill:
      return COMMON_SAMPLER_TYPE_INFILL;
    case SamplerKind::adaptive_p:
      return COMMON_SAMPLER_TYPE_ADAPTIVE_P;
  }
  FERMATA_CHECK(false, "a sampler without a name");
}

common_grammar_type library_origin(GrammarOrigin origin) {
  switch (origin) {
    case GrammarOrigin::json_schema:
      return COMMON_GRAMMAR_TYPE_OUTPUT_FORMAT;
    case GrammarOrigin::tool_calls:
      return COMMON_GRAMMAR_TYPE_TOOL_CALLS;
    case GrammarOrigin::none:
    case GrammarOrigin::client:
      break;
  }
  return COMMON_GRAMMAR_TYPE_USER;
}

common_grammar_trigger_type library_trigger(GrammarTrigger::Kind kind) {
  switch (kind) {
    case GrammarTrigger::Kind::token:
      return COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN;
    case GrammarTrigger::Kind::word:
      return COMMON_GRAMMAR_TRIGGER_TYPE_WORD;
    case GrammarTrigger::Kind::pattern:
      return COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN;
    case GrammarTrigger::Kind::pattern_full:
      return COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL;
  }
  FERMATA_CHECK(false, "a trigger without a kind");
}

std::optional<SamplerFault> find_number_fault(const SamplingParams& params) {
  const std::array<std::pair<const char*, float>, 18> numbers{{
      {"top_p", params.top_p},
      {"min_p", params.min_p},
      {"top_n_sigma", params.top_n_sigma},
      {"xtc_probability", params.xtc_probability},
      {"xtc_threshold", params.xtc_threshold},
      {"typical_p", params.typical_p},
      {"temperature", params.temperature},
      {"dynatemp_range", params.dynatemp_range},
      {"dynatemp_exponent", params.dynatemp_exponent},
      {"repeat_penalty", params.repeat_penalty},
      {"frequency_penalty", params.frequency_penalty},
      {"presence_penalty", params.presence_penalty},
      {"dry_multiplier", params.dry_multiplier},
      {"dry_base", params.dry_base},
      {"mirostat_tau", params.mirostat_tau},
      {"mirostat_eta", params.mirostat_eta},
      {"adaptive_target", params.adaptive_target},
      {"adaptive_decay", params.adaptive_decay},
  }};
  for (const auto& [field, value] : numbers) {
    if (!std::isfinite(value)) return fault(field, "must be a finite number");
  }
  if (params.repeat_penalty <= 0.0F || !std::isfinite(1.0F / params.repeat_penalty)) {
    return fault("repeat_penalty", "must be greater than 0");
  }
  if (params.mirostat < 0 || params.mirostat > 2) {
    return fault("mirostat", "must be 0 (off), 1 or 2");
  }
  return std::nullopt;
}

// The infill sampler compares every candidate with every other, and invents an end token that a
// grammar may forbid (which the library does not survive).
std::optional<SamplerFault> find_infill_fault(const llama_vocab* vocab,
                                              const SamplingParams& params) {
  if (!params.grammar.empty()) return fault("samplers", "infill cannot be used with a grammar");
  if (llama_vocab_eot(vocab) < 0 && llama_vocab_eos(vocab) < 0) {
    return fault("samplers", "infill needs a model with an end token");
  }
  const auto infill =
      std::find(params.samplers.begin(), params.samplers.end(), SamplerKind::infill);
  const bool cut = std::find(params.samplers.begin(), infill, SamplerKind::top_k) != infill;
  if (!cut || params.top_k < 1 || params.top_k > infill_top_k_max) {
    return fault("samplers", "infill needs top_k before it, with a value from 1 to " +
                                 std::to_string(infill_top_k_max));
  }
  return std::nullopt;
}

std::optional<SamplerFault> find_list_fault(const llama_vocab* vocab,
                                            const SamplingParams& params) {
  if (params.samplers.size() > samplers_max) {
    return fault("samplers", "more than " + std::to_string(samplers_max));
  }
  if (params.dry_sequence_breakers.size() > breakers_max) {
    return fault("dry_sequence_breakers", "more than " + std::to_string(breakers_max));
  }
  for (const std::string& breaker : params.dry_sequence_breakers) {
    if (breaker.size() > breaker_bytes_max) {
      return fault("dry_sequence_breakers",
                   "longer than " + std::to_string(breaker_bytes_max) + " bytes");
    }
  }
  const std::int32_t n_vocab = llama_vocab_n_tokens(vocab);
  for (const auto& [token, bias] : params.logit_bias) {
    if (raw(token) < 0 || raw(token) >= n_vocab) {
      return fault("logit_bias", "token " + std::to_string(raw(token)) + " is not one of the " +
                                     std::to_string(n_vocab) + " of the model");
    }
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
      return fault("logit_bias", "must be a number below infinity");
    }
  }
  const bool has_infill = std::find(params.samplers.begin(), params.samplers.end(),
                                    SamplerKind::infill) != params.samplers.end();
  return has_infill ? find_infill_fault(vocab, params) : std::nullopt;
}

// The library would find out too, but not without losing memory.
bool is_regular_expression(const std::string& pattern) {
  try {
    const std::regex compiled(pattern);
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

std::optional<SamplerFault> find_trigger_fault(const llama_vocab* vocab,
                                               const SamplingParams& params) {
  if (params.grammar_triggers.size() > triggers_max) {
    return fault("grammar_triggers", "more than " + std::to_string(triggers_max));
  }
  for (const GrammarTrigger& trigger : params.grammar_triggers) {
    if (trigger.value.size() > trigger_bytes_max) {
      return fault("grammar_triggers",
                   "longer than " + std::to_string(trigger_bytes_max) + " bytes");
    }
    if (trigger.kind == GrammarTrigger::Kind::token &&
        (raw(trigger.token) < 0 || raw(trigger.token) >= llama_vocab_n_tokens(vocab))) {
      return fault("grammar_triggers", "a token that the model does not have");
    }
    const bool is_pattern = trigger.kind == GrammarTrigger::Kind::pattern ||
                            trigger.kind == GrammarTrigger::Kind::pattern_full;
    // Matching takes a stack frame for each character of a reply, and can take for ever.
    if (is_pattern && params.grammar_origin != GrammarOrigin::tool_calls) {
      return fault("grammar_triggers", "patterns are for chat templates only; use a word");
    }
    if (is_pattern && !is_regular_expression(trigger.value)) {
      return fault("grammar_triggers", "not a regular expression");
    }
  }
  return std::nullopt;
}

// The library feeds the generation prompt to grammars of its own making, and aborts when an end
// token is in it.
bool has_end_token(const llama_vocab* vocab, const std::string& text) {
  const std::vector<llama_token> tokens = common_tokenize(vocab, text, false, true);
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](llama_token token) { return llama_vocab_is_eog(vocab, token); });
}

std::optional<SamplerFault> find_constraint_fault(const llama_vocab* vocab,
                                                  const SamplingParams& params) {
  if (params.grammar.empty()) return std::nullopt;
  const auto is_token = [&](std::string_view text) {
    return common_tokenize(vocab, std::string(text), false, true).size() == 1;
  };
  if (std::string what = find_grammar_fault(params.grammar, is_token); !what.empty()) {
    return fault("grammar", what);
  }
  if (params.grammar_lazy && params.grammar_triggers.empty()) {
    return fault("grammar_triggers", "a lazy grammar needs at least one");
  }
  if (auto found = find_trigger_fault(vocab, params)) return found;
  const bool is_fed = params.grammar_origin == GrammarOrigin::json_schema ||
                      params.grammar_origin == GrammarOrigin::tool_calls;
  if (is_fed && !params.grammar_lazy && has_end_token(vocab, params.generation_prompt)) {
    return fault("messages", "the beginning of the reply holds a token that ends replies");
  }
  return std::nullopt;
}

std::int32_t last_tokens(std::int32_t wanted, std::int32_t whole_window) {
  return std::min(wanted < 0 ? whole_window : wanted, last_tokens_max);
}

// "-1: the whole context" cannot mean more than the window that the model was made for.
std::int32_t whole_window(const llama_model* model) {
  std::array<char, 64> architecture{};
  std::array<char, 32> value{};
  llama_model_meta_val_str(model, "general.architecture", architecture.data(), architecture.size());
  const std::string key = std::string(architecture.data()) + ".context_length";
  llama_model_meta_val_str(model, key.c_str(), value.data(), value.size());
  return std::clamp(std::atoi(value.data()), 4096, last_tokens_max);
}

void set_numbers(const SamplingParams& params, common_params_sampling& out) {
  out.min_keep = std::max(0, params.min_keep);
  out.top_k = params.top_k;
  out.top_p = params.top_p;
  out.min_p = params.min_p;
  out.top_n_sigma = params.top_n_sigma;
  out.xtc_probability = params.xtc_probability;
  out.xtc_threshold = params.xtc_threshold;
  out.typ_p = params.typical_p;
  out.temp = params.temperature;
  out.dynatemp_range = params.dynatemp_range;
  out.dynatemp_exponent = params.dynatemp_exponent;
  out.penalty_repeat = params.repeat_penalty;
  out.penalty_freq = params.frequency_penalty;
  out.penalty_present = params.presence_penalty;
  out.dry_multiplier = params.dry_multiplier;
  out.dry_base = params.dry_base;
  out.dry_allowed_length = params.dry_allowed_length;
  out.dry_sequence_breakers.clear();
  for (const std::string& breaker : params.dry_sequence_breakers) {
    // The library reads them up to a NUL, and warns of empty ones.
    if (!breaker.empty() && breaker.front() != '\0') out.dry_sequence_breakers.push_back(breaker);
  }
  out.mirostat = params.mirostat;
  out.mirostat_tau = params.mirostat_tau;
  out.mirostat_eta = params.mirostat_eta;
  out.adaptive_target = params.adaptive_target;
  out.adaptive_decay = params.adaptive_decay;
  out.ignore_eos = params.ignore_eos;
  out.no_perf = true;
}

void set_grammar(const SamplingParams& params, common_params_sampling& out) {
  if (params.grammar.empty()) return;
  out.grammar = common_grammar(library_origin(params.grammar_origin), params.grammar);
  out.grammar_lazy = params.grammar_lazy;
  out.generation_prompt = params.generation_prompt;
  for (const GrammarTrigger& trigger : params.grammar_triggers) {
    out.grammar_triggers.push_back(
        common_grammar_trigger{library_trigger(trigger.kind), trigger.value, raw(trigger.token)});
  }
}

void set_reasoning(const llama_vocab* vocab, const SamplingParams& params,
                   common_params_sampling& out) {
  if (params.reasoning_start.empty() || params.reasoning_ends.empty()) return;
  const auto tokens = [&](const std::string& text) {
    return common_tokenize(vocab, text, false, true);
  };
  out.reasoning_budget_tokens = params.reasoning_budget;
  out.reasoning_control = params.reasoning_control;
  out.reasoning_budget_start = tokens(params.reasoning_start);
  for (const std::string& end : params.reasoning_ends) {
    out.reasoning_budget_end.push_back(tokens(end));
  }
  out.reasoning_budget_forced =
      tokens(params.reasoning_budget_message + params.reasoning_ends.front());
  out.generation_prompt = params.generation_prompt;
}

}  // namespace

Result<common_params_sampling, SamplerFault> library_params(const llama_model* model,
                                                            const SamplingParams& params) {
  const llama_vocab* vocab = llama_model_get_vocab(model);
  if (auto found = find_number_fault(params)) return Err{std::move(*found)};
  if (auto found = find_list_fault(vocab, params)) return Err{std::move(*found)};
  if (auto found = find_constraint_fault(vocab, params)) return Err{std::move(*found)};

  common_params_sampling out;
  set_numbers(params, out);
  set_grammar(params, out);
  set_reasoning(vocab, params, out);
  out.seed = params.seed;
  while (out.seed == seed_random) out.seed = static_cast<std::uint32_t>(system_random());
  out.penalty_last_n = last_tokens(params.repeat_last_n, whole_window(model));
  out.dry_penalty_last_n = last_tokens(params.dry_penalty_last_n, whole_window(model));
  out.samplers.clear();
  for (const SamplerKind kind : params.samplers) out.samplers.push_back(library_kind(kind));
  for (const auto& [token, bias] : params.logit_bias) {
    out.logit_bias.push_back(llama_logit_bias{raw(token), bias});
  }
  if (params.ignore_eos) {
    const std::int32_t n_vocab = llama_vocab_n_tokens(vocab);
    for (llama_token token = 0; token < n_vocab; ++token) {
      if (!llama_vocab_is_eog(vocab, token)) continue;
      out.logit_bias.push_back(llama_logit_bias{token, -std::numeric_limits<float>::infinity()});
    }
  }
  return out;
}

Result<std::unique_ptr<Sampler>, SamplerFault> LlamaSampler::make(const llama_model* model,
                                                                  const SamplingParams& params,
                                                                  std::span<const TokenId> prompt) {
  try {
    auto wanted = library_params(model, params);
    if (!wanted) return Err{wanted.error()};
    common_params_sampling& library = wanted.value();
    common_sampler_ptr chain(common_sampler_init(model, library));
    if (!chain) return Err{fault("samplers", "the library cannot make this chain")};
    // Only the tail of the prompt can still be seen by a penalty.
    const auto tail = static_cast<std::size_t>(
        std::max({library.penalty_last_n, library.dry_penalty_last_n, library.n_prev}));
    for (const TokenId token : prompt.last(std::min(prompt.size(), tail))) {
      common_sampler_accept(chain.get(), raw(token), false);
    }
    return std::unique_ptr<Sampler>(new LlamaSampler(
        std::move(chain), library.seed, std::max(0, params.n_probs), params.post_sampling_probs));
  } catch (const std::exception& e) {
    return Err{fault(params.grammar.empty() ? "samplers" : "grammar", e.what())};
  }
}

std::unique_ptr<Sampler> LlamaSampler::clone() const {
  common_sampler_ptr copy(common_sampler_clone(chain_.get()));
  std::unique_ptr<LlamaSampler> out(
      new LlamaSampler(std::move(copy), seed_, n_probs_, post_sampling_));
  out->failed_ = failed_;
  return out;
}

bool LlamaSampler::end_thoughts() { return common_sampler_reasoning_budget_force(chain_.get()); }

std::optional<TokenId> LlamaSampler::choose(llama_context* context, std::int32_t row,
                                            const float* logits) {
  const std::int32_t n_vocab =
      llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)));
  if (logits == nullptr || has_nan({logits, static_cast<std::size_t>(n_vocab)})) {
    return std::nullopt;
  }
  const llama_token token = common_sampler_sample(chain_.get(), context, row);
  // Where no token is allowed the library still names one, and ends the process when it is
  // accepted. Its weight tells.
  const llama_token_data_array* left = common_sampler_get_candidates(chain_.get(), false);
  const bool is_choice = left->selected >= 0 &&
                         left->data[left->selected].logit > -std::numeric_limits<float>::infinity();
  if (!is_choice || token < 0 || token >= n_vocab) return std::nullopt;
  return TokenId{token};
}

std::optional<Sampled> LlamaSampler::sample(llama_context* context, std::int32_t row) {
  if (failed_) return std::nullopt;
  failed_ = true;  // Unless the end is reached.
  try {
    const float* logits = llama_get_logits_ith(context, row);
    const auto token = choose(context, row, logits);
    if (!token) return std::nullopt;
    Sampled out;
    out.token = *token;
    if (n_probs_ > 0 && post_sampling_) {
      report_candidates(*common_sampler_get_candidates(chain_.get(), true), n_probs_, out);
    } else if (n_probs_ > 0) {
      const auto n_vocab = static_cast<std::size_t>(
          llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context))));
      report_log_probabilities({logits, n_vocab}, n_probs_, out);
    }
    common_sampler_accept(chain_.get(), raw(*token), true);
    failed_ = false;
    return out;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace fermata::engine::llama
