// POST /completion (native) and POST /v1/completions (OpenAI).
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"

#include <memory>
#include <string_view>

namespace fermata::api {

// The prompt of a completion: a string, a list of token ids, or a list that mixes both. Empty text
// becomes the model's beginning-of-text token where it has one. Throws ApiError, about `name`.
std::vector<TokenId> read_prompt(const Json& prompt, const engine::Vocabulary& vocabulary,
                                 std::string_view name);

std::unique_ptr<Exchange> native_completion(const Json& body, const Context& context);
std::unique_ptr<Exchange> openai_completion(const Json& body, const Context& context);

}  // namespace fermata::api
