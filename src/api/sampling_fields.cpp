#include "api/sampling_fields.h"

#include "api/response_format.h"
#include "base/check.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace fermata::api {
namespace {

struct FloatField {
  const char* name;
  float SamplingParams::*member;
  float low, high;
};
struct IntField {
  const char* name;
  std::int32_t SamplingParams::*member;
  std::int64_t low, high;
};

constexpr float huge = 1e9F;
constexpr float penalty_max = 100.0F;
constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t list_entries_max = 4096;

constexpr auto float_fields = std::to_array<FloatField>({
    {"temperature", &SamplingParams::temperature, -huge, huge},
    {"dynatemp_range", &SamplingParams::dynatemp_range, 0, huge},
    {"dynatemp_exponent", &SamplingParams::dynatemp_exponent, 0, 100},
    {"top_p", &SamplingParams::top_p, 0, 1},
    {"min_p", &SamplingParams::min_p, 0, 1},
    {"top_n_sigma", &SamplingParams::top_n_sigma, -huge, huge},
    {"xtc_probability", &SamplingParams::xtc_probability, 0, 1},
    {"xtc_threshold", &SamplingParams::xtc_threshold, 0, 1},
    {"typical_p", &SamplingParams::typical_p, 0, 1},
    {"repeat_penalty", &SamplingParams::repeat_penalty, 1e-3F, penalty_max},
    {"frequency_penalty", &SamplingParams::frequency_penalty, -penalty_max, penalty_max},
    {"presence_penalty", &SamplingParams::presence_penalty, -penalty_max, penalty_max},
    {"dry_multiplier", &SamplingParams::dry_multiplier, 0, penalty_max},
    {"dry_base", &SamplingParams::dry_base, 0, penalty_max},
    {"mirostat_tau", &SamplingParams::mirostat_tau, 0, huge},
    {"mirostat_eta", &SamplingParams::mirostat_eta, 0, 10},
    {"adaptive_target", &SamplingParams::adaptive_target, -1, 1},
    {"adaptive_decay", &SamplingParams::adaptive_decay, 0, 0.99F},
});

constexpr auto int_fields = std::to_array<IntField>({
    {"min_keep", &SamplingParams::min_keep, 0, int_max},
    {"top_k", &SamplingParams::top_k, -1, int_max},
    {"dry_allowed_length", &SamplingParams::dry_allowed_length, 0, int_max},
    {"mirostat", &SamplingParams::mirostat, 0, 2},
    {"n_probs", &SamplingParams::n_probs, 0, n_probs_max},
});

struct NamedSampler {
  const char* name;
  SamplerKind kind;
  char letter;
};
constexpr auto sampler_names = std::to_array<NamedSampler>({
    {"penalties", SamplerKind::penalties, 'e'},
    {"dry", SamplerKind::dry, 'd'},
    {"top_n_sigma", SamplerKind::top_n_sigma, 's'},
    {"top_k", SamplerKind::top_k, 'k'},
    {"typ_p", SamplerKind::typical_p, 'y'},
    {"top_p", SamplerKind::top_p, 'p'},
    {"min_p", SamplerKind::min_p, 'm'},
    {"xtc", SamplerKind::xtc, 'x'},
    {"temperature", SamplerKind::temperature, 't'},
    {"infill", SamplerKind::infill, 'i'},
    {"adaptive_p", SamplerKind::adaptive_p, 'a'},
    // Other spellings that clients send.
    {"typical_p", SamplerKind::typical_p, '\0'},
    {"typical", SamplerKind::typical_p, '\0'},
    {"temp", SamplerKind::temperature, '\0'},
    {"top-k", SamplerKind::top_k, '\0'},
    {"top-p", SamplerKind::top_p, '\0'},
    {"min-p", SamplerKind::min_p, '\0'},
});

SamplerKind sampler_kind(const std::string& name) {
  for (const NamedSampler& known : sampler_names) {
    if (name == known.name) return known.kind;
  }
  throw bad_request("samplers: '" + name + "' is not a sampler");
}

std::string sampler_name(SamplerKind kind) {
  for (const NamedSampler& known : sampler_names) {
    if (known.kind == kind) return known.name;
  }
  return "unknown";
}

std::vector<SamplerKind> samplers_from_letters(const std::string& letters) {
  std::vector<SamplerKind> out;
  for (const char letter : letters) {
    const auto found = std::find_if(sampler_names.begin(), sampler_names.end(),
                                    [&](const NamedSampler& n) { return n.letter == letter; });
    if (found == sampler_names.end() || letter == '\0') {
      throw bad_request("samplers: '" + std::string(1, letter) + "' is not a sampler's letter");
    }
    out.push_back(found->kind);
  }
  return out;
}

void read_samplers(const Fields& fields, SamplingParams& params) {
  const Json* value = fields.find("samplers");
  if (value == nullptr) return;
  if (value->is_string()) {
    params.samplers = samplers_from_letters(value->get<std::string>());
    return;
  }
  params.samplers.clear();
  for (const std::string& name : fields.strings("samplers", {}, list_entries_max)) {
    params.samplers.push_back(sampler_kind(name));
  }
}

// One entry of logit_bias: a token id or a text, and a number or false ("never").
void add_bias(const Json& what, const Json& how_much, const Context& context,
              SamplingParams& params) {
  float bias = 0.0F;
  if (how_much.is_number()) {
    bias = std::clamp(how_much.get<float>(), -huge, huge);
  } else if (how_much.is_boolean() && !how_much.get<bool>()) {
    bias = -std::numeric_limits<float>::infinity();
  } else {
    throw bad_request("logit_bias: a bias must be a number or false");
  }
  if (what.is_number_integer()) {
    const auto token = what.get<std::int64_t>();
    if (token < 0 || token >= context.vocabulary->size()) {
      throw bad_request("logit_bias: token " + std::to_string(token) + " is not in the vocabulary");
    }
    params.logit_bias.emplace_back(TokenId{static_cast<std::int32_t>(token)}, bias);
  } else if (what.is_string()) {
    for (TokenId token : context.vocabulary->tokenize(what.get<std::string>(), false, false)) {
      params.logit_bias.emplace_back(token, bias);
    }
  } else {
    throw bad_request("logit_bias: an entry must begin with a token id or a text");
  }
}

// {"15043": 1.0} as OpenAI has it, or [[15043, 1.0], ["Hello", false]] as llama-server does.
void read_logit_bias(const Fields& fields, const Context& context, SamplingParams& params) {
  const Json* value = fields.find("logit_bias");
  if (value == nullptr) return;
  params.logit_bias.clear();
  if (value->size() > list_entries_max) throw bad_request("logit_bias: too many entries");
  if (value->is_object()) {
    for (const auto& [key, bias] : value->items()) {
      const bool is_id =
          !key.empty() && key.size() < 10 &&
          std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
      add_bias(is_id ? Json(std::stoll(key)) : Json(key), bias, context, params);
    }
  } else if (value->is_array()) {
    for (const Json& entry : *value) {
      if (!entry.is_array() || entry.size() != 2) {
        throw bad_request("logit_bias: an entry must be a pair");
      }
      add_bias(entry[0], entry[1], context, params);
    }
  } else {
    throw bad_request("logit_bias: must be an object or a list of pairs");
  }
}

// The schema that was given as field `name` becomes the grammar.
void take_schema(const std::string& schema, std::string_view name, const Context& context,
                 SamplingParams& params) {
  auto grammar = context.vocabulary->grammar_from_schema(schema);
  if (!grammar) {
    constexpr std::string_view prefix = "json_schema";
    std::string message = grammar.error().message;
    if (message.starts_with(prefix)) message.replace(0, prefix.size(), name);
    throw bad_request(message);
  }
  params.grammar = std::move(grammar).value();
  params.grammar_origin = GrammarOrigin::json_schema;
}

void read_grammar(const Fields& fields, const Context& context, SamplingParams& params) {
  if (const Json* schema = fields.find("json_schema")) {
    if (fields.has("grammar")) throw bad_request("json_schema and grammar exclude each other");
    if (!schema->is_object()) throw bad_request("json_schema: must be an object");
    take_schema(dump(*schema), "json_schema", context, params);
    return;
  }
  params.grammar = fields.string("grammar", params.grammar);
  params.grammar_origin = params.grammar.empty() ? GrammarOrigin::none : GrammarOrigin::client;
}

std::uint32_t read_seed(const Fields& fields, std::uint32_t fallback) {
  const std::int64_t seed =
      fields.integer("seed", -2, -1, std::numeric_limits<std::uint32_t>::max());
  if (seed == -2) return fallback;
  return seed == -1 ? seed_random : static_cast<std::uint32_t>(seed);
}

}  // namespace

SamplingParams default_sampling(const settings::SamplingSettings& settings) {
  SamplingParams out;
  out.seed = settings.seed < 0 ? seed_random : static_cast<std::uint32_t>(settings.seed);
  out.samplers.clear();
  for (const std::string& name : settings.samplers) out.samplers.push_back(sampler_kind(name));
  const auto narrow = [](std::int64_t value) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, -1, int_max));
  };
  for (const std::string& text : settings.logit_bias) {
    const auto bias = settings::logit_bias_of(text);
    FERMATA_CHECK(bias.has_value(), "a bias that the settings do not allow");
    out.logit_bias.emplace_back(TokenId{bias->token}, bias->bias);
  }
  out.grammar = settings.grammar;
  if (!out.grammar.empty()) out.grammar_origin = GrammarOrigin::client;
  out.ignore_eos = settings.ignore_eos;
  out.temperature = settings.temperature;
  out.top_k = narrow(settings.top_k);
  out.top_p = settings.top_p;
  out.min_p = settings.min_p;
  out.top_n_sigma = settings.top_n_sigma;
  out.xtc_probability = settings.xtc_probability;
  out.xtc_threshold = settings.xtc_threshold;
  out.typical_p = settings.typical_p;
  out.repeat_last_n = narrow(settings.repeat_last_n);
  out.repeat_penalty = settings.repeat_penalty;
  out.presence_penalty = settings.presence_penalty;
  out.frequency_penalty = settings.frequency_penalty;
  out.dry_multiplier = settings.dry_multiplier;
  out.dry_base = settings.dry_base;
  out.dry_allowed_length = narrow(settings.dry_allowed_length);
  out.dry_penalty_last_n = narrow(settings.dry_penalty_last_n);
  out.dry_sequence_breakers = settings.dry_sequence_breakers;
  out.adaptive_target = settings.adaptive_target;
  out.adaptive_decay = settings.adaptive_decay;
  out.dynatemp_range = settings.dynatemp_range;
  out.dynatemp_exponent = settings.dynatemp_exponent;
  out.mirostat = narrow(settings.mirostat);
  out.mirostat_eta = settings.mirostat_eta;
  out.mirostat_tau = settings.mirostat_tau;
  return out;
}

SamplingParams read_sampling(const Fields& fields, const Context& context, Tokens window) {
  SamplingParams out = default_sampling(context.settings->sampling);
  for (const FloatField& field : float_fields) {
    out.*field.member = fields.number(field.name, out.*field.member, field.low, field.high);
  }
  for (const IntField& field : int_fields) {
    out.*field.member = static_cast<std::int32_t>(
        fields.integer(field.name, out.*field.member, field.low, field.high));
  }
  // A temperature so small that logits overflow when divided by it is greedy in all but name.
  if (out.temperature < 1e-6F) out.temperature = 0.0F;
  // -1: the whole window. Looking back further than the window is the window.
  const auto look_back = [&](std::string_view name, std::int32_t fallback) {
    const std::int64_t n = fields.integer(name, fallback, -1, int_max);
    return static_cast<std::int32_t>(n < 0 ? window.value : std::min(n, window.value));
  };
  out.repeat_last_n = look_back("repeat_last_n", out.repeat_last_n);
  out.dry_penalty_last_n = look_back("dry_penalty_last_n", out.dry_penalty_last_n);
  out.dry_sequence_breakers =
      fields.strings("dry_sequence_breakers", out.dry_sequence_breakers, list_entries_max);
  out.ignore_eos = fields.boolean("ignore_eos", out.ignore_eos);
  out.post_sampling_probs = fields.boolean("post_sampling_probs", false);
  out.seed = read_seed(fields, out.seed);
  read_samplers(fields, out);
  read_logit_bias(fields, context, out);
  read_grammar(fields, context, out);
  return out;
}

void constrain_to_format(const Fields& fields, const Context& context, SamplingParams& params) {
  const std::string schema = read_response_format(fields);
  if (schema.empty()) return;
  if (fields.has("grammar") || fields.has("json_schema")) {
    throw bad_request("response_format: excludes grammar and json_schema");
  }
  take_schema(schema, "response_format", context, params);
}

Json sampling_json(const SamplingParams& params) {
  Json samplers = Json::array();
  for (SamplerKind kind : params.samplers) samplers.push_back(sampler_name(kind));
  Json bias = Json::array();
  for (const auto& [token, value] : params.logit_bias) {
    bias.push_back({{"bias", std::max(value, -huge)}, {"token", raw(token)}});
  }
  Json out = {{"seed", params.seed}};
  for (const FloatField& field : float_fields) out[field.name] = params.*field.member;
  for (const IntField& field : int_fields) out[field.name] = params.*field.member;
  out["repeat_last_n"] = params.repeat_last_n;
  out["dry_penalty_last_n"] = params.dry_penalty_last_n;
  out["dry_sequence_breakers"] = params.dry_sequence_breakers;
  out["ignore_eos"] = params.ignore_eos;
  out["logit_bias"] = bias;
  out["grammar"] = params.grammar;
  out["samplers"] = samplers;
  out["post_sampling_probs"] = params.post_sampling_probs;
  return out;
}

Json generation_settings(const Request& request) {
  Json out = sampling_json(request.sampling);
  out["n_predict"] = request.max_tokens.value;
  out["max_tokens"] = request.max_tokens.value;
  out["n_keep"] = request.n_keep.value;
  out["n_discard"] = request.n_discard.value;
  out["n_indent"] = request.n_indent;
  out["t_max_predict_ms"] = request.predict_time_max.value / 1000;
  out["timings_per_token"] = request.wants_timings;
  out["stop"] = request.stop;
  return out;
}

}  // namespace fermata::api
