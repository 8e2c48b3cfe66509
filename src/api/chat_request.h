// A chat as a client asks for it, in OpenAI's shape: its fields checked, the template applied. What
// other APIs ask is turned into this shape first.
#pragma once

#include "api/context.h"
#include "api/control_texts.h"
#include "api/exchange.h"
#include "api/fields.h"
#include "api/generation.h"
#include "api/live_chats.h"
#include "core/request.h"
#include "engine/vocabulary.h"

#include <memory>
#include <string>
#include <vector>

namespace fermata::api {

struct RenderedChat {
  CutText text;  // The prompt: what messages spell is no control token.
  std::vector<std::string> stop;
  SamplingParams constraints;
  std::shared_ptr<const engine::ReplyParser> parser;
};

// The messages, tools and all else that shapes the prompt. Throws ApiError.
RenderedChat render_chat(const Fields& fields, const Context& context);

// Tokens of the prompt that a chat would start from. Throws ApiError.
std::int64_t count_chat_tokens(const Json& body, const Context& context);

// A chat that can be launched.
struct Chat {
  Request request;
  std::size_t choices = 1;
  GenerationOptions options;
  std::shared_ptr<const engine::ReplyParser> parser;
  EndThoughts end_thoughts;  // Null: not asked for, or there are no thoughts to end.
};
Chat read_chat(const Json& body, const Context& context);

// Empty, or why the server's own chat settings cannot be used, in one line.
std::string find_chat_settings_fault(const settings::ChatSettings& settings);

}  // namespace fermata::api
