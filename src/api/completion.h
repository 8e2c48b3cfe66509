// POST /completion (native) and POST /v1/completions (OpenAI).
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"

#include <memory>
#include <vector>

namespace fermata::api {

std::unique_ptr<Exchange> native_completion(const Json& body, const Context& context);
// With prompts that are tokens already.
std::unique_ptr<Exchange> native_completion(const Fields& fields, const Context& context,
                                            std::vector<std::vector<TokenId>> prompts);
std::unique_ptr<Exchange> openai_completion(const Json& body, const Context& context);

}  // namespace fermata::api
