// OpenAI's "response_format", of chats and completions alike.
#pragma once

#include "api/fields.h"

#include <string>

namespace fermata::api {

// What the reply must look like, as a JSON schema; empty: anything. Throws ApiError.
std::string read_response_format(const Fields& fields);

}  // namespace fermata::api
