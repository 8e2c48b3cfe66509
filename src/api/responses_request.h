// What clients of OpenAI's Responses API ask, as the chat that it means.
#pragma once

#include "api/fields.h"

namespace fermata::api {

// The body of an equal chat completion. Fields that both have, and our own, are taken over as they
// are. Throws ApiError, which names the fields of `body`.
Json chat_of_response(const Json& body);

}  // namespace fermata::api
