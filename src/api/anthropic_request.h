// What clients of Anthropic's Messages API ask, as the chat that it means.
#pragma once

#include "api/fields.h"

#include <string>
#include <vector>

namespace fermata::api {

// The body of an equal chat completion. Fields that both have, and our own, are taken over as they
// are. Throws ApiError, which names the fields of `body`.
Json chat_of_messages(const Json& body);

// "stop_sequences". Throws ApiError.
std::vector<std::string> stop_sequences(const Fields& fields);

}  // namespace fermata::api
