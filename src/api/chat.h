// POST /v1/chat/completions, its count of tokens, and POST /apply-template, which shows the prompt
// it would use.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"

#include <memory>

namespace fermata::api {

std::unique_ptr<Exchange> chat_completion(const Json& body, const Context& context);
std::unique_ptr<Exchange> chat_input_tokens(const Json& body, const Context& context);
std::unique_ptr<Exchange> apply_template(const Json& body, const Context& context);

}  // namespace fermata::api
