#include "api/message.h"

#include "base/random.h"

namespace fermata::api {
namespace {

constexpr int call_id_letters = 32;

// Tells what `now` has beyond `told`, unless they differ before its end.
void tell_growth(MessageDelta::Kind kind, std::size_t call, const std::string& now,
                 std::string& told, const OnDelta& on_delta) {
  if (now.size() <= told.size() || !now.starts_with(told)) return;
  on_delta({.kind = kind, .text = std::string_view(now).substr(told.size()), .call = call});
  told = now;
}

}  // namespace

void GrowingMessage::grow(std::string_view text, const OnDelta& on_delta) {
  if (text.empty()) return;
  if (is_plain()) {
    message_.content += text;
    on_delta({.kind = MessageDelta::Kind::content, .text = text});
    return;
  }
  text_ += text;
  const bool is_free = parsed_bytes_ + text_.size() <= parse_bytes_free;
  if (is_free || text_.size() - parsed_at_ >= text_.size() / parse_growth) parse(true, on_delta);
}

void GrowingMessage::finish(const OnDelta& on_delta) {
  if (!is_plain()) parse(false, on_delta);
}

void GrowingMessage::parse(bool partial, const OnDelta& on_delta) {
  message_ = parser_->parse(text_, partial);
  parsed_bytes_ += text_.size();
  parsed_at_ = text_.size();
  tell_growth(MessageDelta::Kind::reasoning, 0, message_.reasoning, told_reasoning_, on_delta);
  tell_growth(MessageDelta::Kind::content, 0, message_.content, told_content_, on_delta);
  tell_calls(partial, on_delta);
}

void GrowingMessage::tell_calls(bool partial, const OnDelta& on_delta) {
  for (std::size_t i = 0; i < message_.tool_calls.size(); ++i) {
    engine::ReplyParser::ToolCall& call = message_.tool_calls[i];
    const bool is_last = i + 1 == message_.tool_calls.size();
    if (!partial && call.arguments.empty()) call.arguments = "{}";
    if (i == calls_.size()) {
      // Its name is whole once something follows it.
      if (call.name.empty() || (partial && is_last && call.arguments.empty())) return;
      calls_.push_back({call.id.empty() ? random_alphanumeric(call_id_letters) : call.id, {}});
      on_delta(
          {.kind = MessageDelta::Kind::call, .call = i, .id = calls_[i].id, .name = call.name});
    }
    call.id = calls_[i].id;
    tell_growth(MessageDelta::Kind::arguments, i, call.arguments, calls_[i].arguments, on_delta);
  }
}

Message message_of(const engine::ReplyParser& parser, const std::string& reply) {
  Message out = parser.parse(reply, false);
  for (engine::ReplyParser::ToolCall& call : out.tool_calls) {
    if (call.id.empty()) call.id = random_alphanumeric(call_id_letters);
    if (call.arguments.empty()) call.arguments = "{}";
  }
  return out;
}

}  // namespace fermata::api
