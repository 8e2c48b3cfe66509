// The sampling fields of a request, with llama-server's names, aliases and defaults. Values that
// no sampler could use are refused by name, never passed on.
#pragma once

#include "api/context.h"
#include "api/fields.h"
#include "core/request.h"
#include "core/sampling_params.h"

#include <cstdint>

namespace fermata::api {

// More would make every token event larger than most replies.
inline constexpr std::int64_t n_probs_max = 1000;

// The server's own defaults as parameters.
SamplingParams default_sampling(const settings::SamplingSettings& settings);

// `window` bounds how far back penalties may look.
SamplingParams read_sampling(const Fields& fields, const Context& context, Tokens window);

// OpenAI's response_format: a schema as the grammar. Throws ApiError.
void constrain_to_format(const Fields& fields, const Context& context, SamplingParams& params);

// The parameters as `generation_settings` and /props show them.
Json sampling_json(const SamplingParams& params);
// With everything else that a request says about its reply.
Json generation_settings(const Request& request);

}  // namespace fermata::api
