// POST /v1/responses and its count of tokens: OpenAI's Responses API, as a chat with other words.
// Nothing is kept: each request brings its whole input.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"

#include <memory>

namespace fermata::api {

std::unique_ptr<Exchange> create_response(const Json& body, const Context& context);
std::unique_ptr<Exchange> response_input_tokens(const Json& body, const Context& context);

}  // namespace fermata::api
