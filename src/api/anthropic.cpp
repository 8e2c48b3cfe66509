#include "api/anthropic.h"

#include "api/anthropic_request.h"
#include "api/chat_request.h"
#include "api/launch.h"
#include "api/message_format.h"
#include "base/random.h"

#include <algorithm>
#include <utility>

namespace fermata::api {
namespace {

constexpr int id_letters = 24;

std::string message_error_json(const ApiError& error) {
  return R"({"type":"error",)" + error_json(error).substr(1);
}

// The arguments of a call as the object that they should be.
Json input_of(const engine::ReplyParser::ToolCall& call) {
  Json out = Json::parse(call.arguments, nullptr, false);
  return out.is_object() ? out : Json::object();
}

Json content_of(const Message& message) {
  Json out = Json::array();
  if (!message.reasoning.empty()) {
    out.push_back({{"type", "thinking"}, {"thinking", message.reasoning}, {"signature", ""}});
  }
  if (!message.content.empty()) out.push_back({{"type", "text"}, {"text", message.content}});
  for (const engine::ReplyParser::ToolCall& call : message.tool_calls) {
    out.push_back(
        {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input_of(call)}});
  }
  return out;
}

Json message_usage_json(const FinalEvent& final) {
  const Timings& timings = final.timings;
  return {{"cache_read_input_tokens", timings.prompt_cached.value},
          {"input_tokens", (final.prompt_tokens - timings.prompt_cached).value},
          {"output_tokens", timings.predicted.value}};
}

class AnthropicFormat final : public MessageFormat {
 public:
  AnthropicFormat(const Context& context, std::shared_ptr<const engine::ReplyParser> parser,
                  std::vector<std::string> stop_sequences, Tokens prompt)
      : MessageFormat(std::move(parser)),
        context_(context),
        id_("msg_" + random_alphanumeric(id_letters)),
        stop_sequences_(std::move(stop_sequences)),
        prompt_(prompt) {}

  // How much of the prompt is cached is not known yet: message_delta tells.
  void begin(std::size_t /*i*/, std::string& out) override {
    Json message = base();
    message["content"] = Json::array();
    message["stop_reason"] = nullptr;
    message["stop_sequence"] = nullptr;
    message["usage"] = {
        {"cache_read_input_tokens", 0}, {"input_tokens", prompt_.value}, {"output_tokens", 0}};
    append(out, "message_start", {{"message", message}});
    keepalive(out);
  }
  void close(std::span<const Outcome> /*choices*/, std::string& out) override {
    append(out, "message_stop", Json::object());
  }
  void keepalive(std::string& out) override { append(out, "ping", Json::object()); }
  void failure(const ApiError& error, std::string& out) override {
    append_named_event(out, "error", message_error_json(error));
  }
  std::string whole_failure(const ApiError& error) override { return message_error_json(error); }

 protected:
  void delta(std::size_t /*i*/, const MessageDelta& delta, const Shown& /*shown*/,
             std::string& out) override {
    switch (delta.kind) {
      case MessageDelta::Kind::reasoning:
        open(Block::thinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}, out);
        return append_delta(out, {{"type", "thinking_delta"}, {"thinking", delta.text}});
      case MessageDelta::Kind::content:
        open(Block::text, {{"type", "text"}, {"text", ""}}, out);
        return append_delta(out, {{"type", "text_delta"}, {"text", delta.text}});
      case MessageDelta::Kind::call:
        close_block(out);
        return open(Block::tool_use,
                    {{"type", "tool_use"},
                     {"id", delta.id},
                     {"name", delta.name},
                     {"input", Json::object()}},
                    out);
      case MessageDelta::Kind::arguments:
        return append_delta(out, {{"type", "input_json_delta"}, {"partial_json", delta.text}});
    }
  }
  void finish(const Outcome& outcome, const Message& message, std::string_view /*probabilities*/,
              std::string& out) override {
    close_block(out);
    Json last = {{"delta", end_json(outcome, message)},
                 {"usage", message_usage_json(outcome.final)}};
    add_figures(last, outcome.final);
    append(out, "message_delta", last);
  }
  std::string whole_message(std::span<const Outcome> choices,
                            std::span<const Message> messages) override {
    const Outcome& outcome = choices.front();
    Json out = base();
    out["content"] = content_of(messages.front());
    out.update(end_json(outcome, messages.front()));
    out["usage"] = message_usage_json(outcome.final);
    add_figures(out, outcome.final);
    return dump(out);
  }

 private:
  enum class Block : std::uint8_t { none, thinking, text, tool_use };

  Json base() const {
    return {
        {"id", id_}, {"type", "message"}, {"role", "assistant"}, {"model", context_.model_name}};
  }
  // A stop word of the template's is none that the client knows.
  Json end_json(const Outcome& outcome, const Message& message) const {
    const std::string& word = outcome.final.stop_word;
    switch (end_of(outcome, message)) {
      case MessageEnd::length:
        return {{"stop_reason", "max_tokens"}, {"stop_sequence", nullptr}};
      case MessageEnd::calls:
        return {{"stop_reason", "tool_use"}, {"stop_sequence", nullptr}};
      case MessageEnd::stop_word:
        if (std::find(stop_sequences_.begin(), stop_sequences_.end(), word) !=
            stop_sequences_.end()) {
          return {{"stop_reason", "stop_sequence"}, {"stop_sequence", word}};
        }
        break;
      case MessageEnd::stop:
        break;
    }
    return {{"stop_reason", "end_turn"}, {"stop_sequence", nullptr}};
  }

  static void append(std::string& out, const char* type, const Json& members) {
    Json event = {{"type", type}};
    event.update(members);
    append_named_event(out, type, dump(event));
  }
  void append_delta(std::string& out, const Json& delta) const {
    append(out, "content_block_delta", {{"index", index_}, {"delta", delta}});
  }
  // The block that the next deltas belong to, unless it is open already.
  void open(Block kind, const Json& block, std::string& out) {
    if (open_ == kind) return;
    close_block(out);
    open_ = kind;
    append(out, "content_block_start", {{"index", index_}, {"content_block", block}});
  }
  void close_block(std::string& out) {
    const Block closed = std::exchange(open_, Block::none);
    if (closed == Block::none) return;
    if (closed == Block::thinking) {
      append_delta(out, {{"type", "signature_delta"}, {"signature", ""}});
    }
    append(out, "content_block_stop", {{"index", index_}});
    ++index_;
  }

  const Context& context_;
  std::string id_;
  std::vector<std::string> stop_sequences_;
  Tokens prompt_;
  Block open_ = Block::none;
  std::size_t index_ = 0;  // Of the open block, else of the next.
};

}  // namespace

std::unique_ptr<Exchange> create_message(const Json& body, const Context& context) {
  Chat chat = read_chat(chat_of_messages(body), context);
  chat.options.ping_chunks = true;
  const Tokens prompt{static_cast<std::int64_t>(chat.request.prompt.size())};
  auto format = std::make_unique<AnthropicFormat>(context, std::move(chat.parser),
                                                  stop_sequences(Fields(body)), prompt);
  return launch(context, std::move(chat.request), 1, std::move(format), chat.options);
}

std::unique_ptr<Exchange> count_message_tokens(const Json& body, const Context& context) {
  const std::int64_t tokens = count_chat_tokens(chat_of_messages(body), context);
  return ready_exchange(Head{}, dump({{"input_tokens", tokens}}));
}

bool is_messages_path(std::string_view path) { return path.starts_with("/v1/messages"); }

std::unique_ptr<Exchange> message_error_exchange(const ApiError& error) {
  Piece piece = error_exchange(error)->pull();
  return ready_exchange(std::move(*piece.head), message_error_json(error));
}

}  // namespace fermata::api
