// What a client calls its conversation: the header X-Conversation-Id, or "conversation" in the
// body.
#pragma once

#include "api/exchange.h"
#include "api/fields.h"

#include <string>
#include <string_view>

namespace fermata::api {

// The name of the page that the conversation is kept under: the id itself where it may name a page,
// else "sha256-" and its digest in hex. "::model" at its end is no part of it. Throws ApiError.
std::string page_of_conversation(std::string_view id);

// Puts the header where read_conversation() finds it, whatever the route makes of the body.
void take_conversation_header(const Inquiry& inquiry, Json& body);

// Empty: the client gave none. Throws ApiError.
std::string read_conversation(const Fields& fields);

}  // namespace fermata::api
