// POST /v1/messages and /v1/messages/count_tokens: Anthropic's Messages API, as a chat with other
// words.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"

#include <memory>
#include <string>
#include <string_view>

namespace fermata::api {

std::unique_ptr<Exchange> create_message(const Json& body, const Context& context);
std::unique_ptr<Exchange> count_message_tokens(const Json& body, const Context& context);

bool is_messages_path(std::string_view path);
// llama-server's error with the "type" that Anthropic's clients look for.
std::unique_ptr<Exchange> message_error_exchange(const ApiError& error);

}  // namespace fermata::api
