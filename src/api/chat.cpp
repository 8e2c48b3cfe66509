#include "api/chat.h"

#include "api/chat_request.h"
#include "api/launch.h"
#include "api/live_chats.h"
#include "api/message_format.h"
#include "base/clock.h"
#include "base/random.h"

namespace fermata::api {
namespace {

const char* finish_reason_of(const Outcome& outcome, const Message& message) {
  switch (end_of(outcome, message)) {
    case MessageEnd::length:
      return "length";
    case MessageEnd::calls:
      return "tool_calls";
    case MessageEnd::stop:
    case MessageEnd::stop_word:
      return "stop";
  }
  return "stop";
}

Json message_json(const Message& message) {
  Json out = {{"role", "assistant"}, {"content", message.content}};
  if (!message.reasoning.empty()) out["reasoning_content"] = message.reasoning;
  if (message.tool_calls.empty()) return out;
  if (message.content.empty()) out["content"] = nullptr;
  Json& calls = out["tool_calls"] = Json::array();
  for (const engine::ReplyParser::ToolCall& call : message.tool_calls) {
    calls.push_back({{"type", "function"},
                     {"id", call.id},
                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return out;
}

class ChatFormat final : public MessageFormat {
 public:
  ChatFormat(const Context& context, bool usage, std::shared_ptr<const engine::ReplyParser> parser,
             EndThoughts end_thoughts)
      : MessageFormat(std::move(parser)),
        usage_(usage),
        base_{{"id", "chatcmpl-" + random_alphanumeric(32)},
              {"object", "chat.completion.chunk"},
              {"created", wall_clock_seconds()},
              {"model", context.model_name},
              {"system_fingerprint", context.build}} {
    // Every token's chunk is the same but for its text and probabilities.
    const std::string rest = dump(base_);
    chunk_tail_ = ",\"finish_reason\":null}]," + rest.substr(1);
    entry_ = context.live_chats->add(base_["id"], context.owner, std::move(end_thoughts));
  }

  void begin(std::size_t i, std::string& out) override {
    append_event(out, chunk(base_, i, {{"role", "assistant"}, {"content", ""}}, nullptr));
  }
  void progress(std::size_t i, const ProgressEvent& progress, std::string& out) override {
    std::string event = chunk(base_, i, Json::object(), nullptr);
    append_member(event, "prompt_progress", dump(progress_json(progress)));
    append_event(out, event);
  }
  void close(std::span<const Outcome> choices, std::string& out) override {
    entry_.reset();
    if (usage_) {
      const FinalEvent final = total(choices);
      Json extra = base_;
      extra["choices"] = Json::array();
      extra["usage"] = usage_json(final.timings, final.prompt_tokens);
      add_figures(extra, final);
      append_event(out, dump(extra));
    }
    append_event(out, "[DONE]");
  }
  void keepalive(std::string& out) override {
    append_event(out, chunk(base_, 0, Json::object(), nullptr));
  }

 protected:
  void delta(std::size_t i, const MessageDelta& delta, const Shown& shown,
             std::string& out) override {
    out += "data: {\"choices\":[{\"index\":" + std::to_string(i) + ",\"delta\":{";
    append_delta(delta, out);
    out += '}';
    append_probabilities(shown.probabilities, out);
    out += chunk_tail_;
    if (!shown.timings.empty()) append_member(out, "timings", shown.timings);
    out += "\n\n";
  }
  void finish(const Outcome& outcome, const Message& message, std::string_view probabilities,
              std::string& out) override {
    const std::size_t i = outcome.index;
    if (!probabilities.empty()) {
      out += "data: {\"choices\":[{\"index\":" + std::to_string(i) + ",\"delta\":{}";
      append_probabilities(probabilities, out);
      out += chunk_tail_ + "\n\n";
    }
    Json last = base_;
    if (!usage_) add_figures(last, outcome.final);
    append_event(out, chunk(last, i, Json::object(), finish_reason_of(outcome, message)));
  }
  std::string whole_message(std::span<const Outcome> choices,
                            std::span<const Message> messages) override {
    entry_.reset();
    const FinalEvent final = total(choices);
    Json out = base_;
    out["object"] = "chat.completion";
    out["usage"] = usage_json(final.timings, final.prompt_tokens);
    add_figures(out, final);
    std::string texts;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (!texts.empty()) texts += ',';
      texts += choice_text({{"index", choices[i].index},
                            {"message", message_json(messages[i])},
                            {"finish_reason", finish_reason_of(choices[i], messages[i])}},
                           choices[i].probabilities);
    }
    return with_choices(out, texts);
  }

 private:
  // The members of a delta.
  static void append_delta(const MessageDelta& delta, std::string& out) {
    switch (delta.kind) {
      case MessageDelta::Kind::reasoning:
        out += "\"reasoning_content\":";
        return append_quoted(out, delta.text);
      case MessageDelta::Kind::content:
        out += "\"content\":";
        return append_quoted(out, delta.text);
      case MessageDelta::Kind::call:
        out += "\"tool_calls\":[{\"index\":" + std::to_string(delta.call) + ",\"id\":";
        append_quoted(out, delta.id);
        out += ",\"type\":\"function\",\"function\":{\"name\":";
        append_quoted(out, delta.name);
        out += ",\"arguments\":\"\"}}]";
        return;
      case MessageDelta::Kind::arguments:
        out += "\"tool_calls\":[{\"index\":" + std::to_string(delta.call) +
               ",\"function\":{\"arguments\":";
        append_quoted(out, delta.text);
        out += "}}]";
        return;
    }
  }
  static void append_probabilities(std::string_view probabilities, std::string& out) {
    if (probabilities.empty()) return;
    out += ",\"logprobs\":{\"content\":";
    out += probabilities;
    out += '}';
  }

  static std::string chunk(const Json& rest, std::size_t i, const Json& delta,
                           const Json& finish_reason) {
    const Json choice = {{"index", i}, {"delta", delta}, {"finish_reason", finish_reason}};
    return with_choices(rest, dump(choice));
  }

  bool usage_;
  Json base_;
  std::string chunk_tail_;
  std::unique_ptr<LiveChats::Entry> entry_;
};

}  // namespace

std::unique_ptr<Exchange> chat_completion(const Json& body, const Context& context) {
  const bool usage = wants_usage(Fields(body));
  Chat chat = read_chat(body, context);
  auto format = std::make_unique<ChatFormat>(context, usage, std::move(chat.parser),
                                             std::move(chat.end_thoughts));
  return launch(context, std::move(chat.request), chat.choices, std::move(format), chat.options);
}

std::unique_ptr<Exchange> chat_input_tokens(const Json& body, const Context& context) {
  return ready_exchange(Head{}, dump({{"object", "response.input_tokens"},
                                      {"input_tokens", count_chat_tokens(body, context)}}));
}

std::unique_ptr<Exchange> apply_template(const Json& body, const Context& context) {
  return ready_exchange(Head{}, dump({{"prompt", render_chat(Fields(body), context).text.text}}));
}

}  // namespace fermata::api
