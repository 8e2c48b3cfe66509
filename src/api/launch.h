// From checked values to a running request: the steps that all generation routes share.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"
#include "api/generation.h"
#include "core/request.h"

#include <memory>
#include <string>

namespace fermata::api {

// Fields that every generation route reads alike: lengths, stop words, caching, seat, sampling.
// The prompt is the caller's. Throws ApiError.
Request read_request(const Fields& fields, const Context& context);

GenerationOptions read_generation_options(const Fields& fields, const Context& context);

// stream_options.include_usage
bool wants_usage(const Fields& fields);

// Answers fields that would change the reply and are not supported yet, rather than ignore them.
void refuse_unsupported(const Fields& fields, std::initializer_list<std::string_view> names);

// Makes the sampler and submits; the exchange of the running request, or throws ApiError: no
// prompt, larger than the window, a bad grammar, a full queue, a server that stops.
std::unique_ptr<Exchange> launch(const Context& context, Request request,
                                 std::unique_ptr<ReplyFormat> format,
                                 const GenerationOptions& options);

}  // namespace fermata::api
