#include "api/responses.h"

#include "api/chat_request.h"
#include "api/launch.h"
#include "api/message_format.h"
#include "api/responses_request.h"
#include "base/clock.h"
#include "base/random.h"

#include <array>
#include <utility>

namespace fermata::api {
namespace {

constexpr int id_letters = 32;

Json response_usage_json(const FinalEvent& final) {
  const Timings& timings = final.timings;
  return {{"input_tokens", final.prompt_tokens.value},
          {"input_tokens_details", {{"cached_tokens", timings.prompt_cached.value}}},
          {"output_tokens", timings.predicted.value},
          {"output_tokens_details", {{"reasoning_tokens", 0}}},
          {"total_tokens", (final.prompt_tokens + timings.predicted).value}};
}

// What of the request a response repeats, with the values of an absent field.
Json echo_of(const Json& body) {
  const Json defaults = {{"instructions", nullptr},
                         {"max_output_tokens", nullptr},
                         {"metadata", Json::object()},
                         {"parallel_tool_calls", true},
                         {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
                         {"temperature", nullptr},
                         {"text", {{"format", {{"type", "text"}}}}},
                         {"tool_choice", "auto"},
                         {"tools", Json::array()},
                         {"top_p", nullptr}};
  Json out = {{"previous_response_id", nullptr}, {"store", false}, {"truncation", "disabled"}};
  for (const auto& [name, value] : defaults.items()) {
    const Json* given = Fields(body).find(name);
    out[name] = given == nullptr ? value : *given;
  }
  return out;
}

class ResponsesFormat final : public MessageFormat {
 public:
  ResponsesFormat(const Context& context, std::shared_ptr<const engine::ReplyParser> parser,
                  Json echo)
      : MessageFormat(std::move(parser)),
        model_(context.model_name),
        echo_(std::move(echo)),
        id_("resp_" + random_alphanumeric(id_letters)),
        message_id_("msg_" + random_alphanumeric(id_letters)),
        reasoning_id_("rs_" + random_alphanumeric(id_letters)),
        created_(wall_clock_seconds()) {}

  void begin(std::size_t /*i*/, std::string& out) override {
    const Json response = response_json("in_progress", Json::array());
    append(out, "response.created", {{"response", response}});
    append(out, "response.in_progress", {{"response", response}});
  }
  void close(std::span<const Outcome> /*choices*/, std::string& /*out*/) override {}
  void keepalive(std::string& out) override { out += ":\n\n"; }
  void failure(const ApiError& error, std::string& out) override {
    Json members = Json::parse(error_json(error));
    members["code"] = members["error"]["type"];
    members["message"] = error.message;
    members["param"] = nullptr;
    append(out, "error", members);
  }

 protected:
  void delta(std::size_t /*i*/, const MessageDelta& delta, const Shown& /*shown*/,
             std::string& out) override {
    switch (delta.kind) {
      case MessageDelta::Kind::reasoning:
        open(Item::reasoning, out);
        text_ += delta.text;
        return append_at(out, "response.reasoning_text.delta",
                         {{"content_index", 0}, {"delta", delta.text}});
      case MessageDelta::Kind::content:
        open(Item::message, out);
        text_ += delta.text;
        return append_at(
            out, "response.output_text.delta",
            {{"content_index", 0}, {"delta", delta.text}, {"logprobs", Json::array()}});
      case MessageDelta::Kind::call:
        close_item(out);
        call_ = {std::string(delta.id), std::string(delta.name), ""};
        return open(Item::call, out);
      case MessageDelta::Kind::arguments:
        text_ += delta.text;
        return append_at(out, "response.function_call_arguments.delta", {{"delta", delta.text}});
    }
  }
  void finish(const Outcome& outcome, const Message& message, std::string_view /*probabilities*/,
              std::string& out) override {
    close_item(out);
    const Json response = whole_json(outcome, message);
    const std::string status = response["status"].get<std::string>();
    append(out, "response." + status, {{"response", response}});
  }
  std::string whole_message(std::span<const Outcome> choices,
                            std::span<const Message> messages) override {
    return dump(whole_json(choices.front(), messages.front()));
  }

 private:
  using Call = engine::ReplyParser::ToolCall;
  enum class Item : std::uint8_t { none, reasoning, message, call };

  // The items, whole or just begun.
  Json reasoning_item(const std::string& text, const char* status) const {
    Json content = Json::array();
    if (!text.empty()) content.push_back({{"type", "reasoning_text"}, {"text", text}});
    return {{"id", reasoning_id_}, {"type", "reasoning"},          {"summary", Json::array()},
            {"content", content},  {"encrypted_content", nullptr}, {"status", status}};
  }
  static Json text_part(const std::string& text) {
    return {{"type", "output_text"},
            {"annotations", Json::array()},
            {"logprobs", Json::array()},
            {"text", text}};
  }
  Json message_item(const Json& content, const char* status) const {
    return {{"id", message_id_},
            {"type", "message"},
            {"role", "assistant"},
            {"status", status},
            {"content", content}};
  }
  static Json call_item(const Call& call, const char* status) {
    return {{"id", "fc_" + call.id}, {"type", "function_call"},     {"call_id", "call_" + call.id},
            {"name", call.name},     {"arguments", call.arguments}, {"status", status}};
  }
  Json items_of(const Message& message) const {
    Json out = Json::array();
    if (!message.reasoning.empty()) out.push_back(reasoning_item(message.reasoning, "completed"));
    if (!message.content.empty()) {
      out.push_back(message_item(Json::array({text_part(message.content)}), "completed"));
    }
    for (const Call& call : message.tool_calls) out.push_back(call_item(call, "completed"));
    return out;
  }

  Json response_json(const char* status, const Json& output) const {
    Json out = {{"id", id_},        {"object", "response"}, {"created_at", created_},
                {"status", status}, {"error", nullptr},     {"incomplete_details", nullptr},
                {"model", model_},  {"output", output},     {"usage", nullptr}};
    out.update(echo_);
    return out;
  }
  Json whole_json(const Outcome& outcome, const Message& message) const {
    const bool is_cut = end_of(outcome, message) == MessageEnd::length;
    Json out = response_json(is_cut ? "incomplete" : "completed", items_of(message));
    if (is_cut) {
      out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    } else {
      out["completed_at"] = wall_clock_seconds();
    }
    out["usage"] = response_usage_json(outcome.final);
    add_figures(out, outcome.final);
    return out;
  }

  void append(std::string& out, const std::string& type, const Json& members) {
    Json event = {{"type", type}, {"sequence_number", sequence_++}};
    event.update(members);
    append_named_event(out, type, dump(event));
  }
  // Of the open item.
  void append_at(std::string& out, const char* type, const Json& members) {
    Json event = {{"item_id", item_id()}, {"output_index", index_}};
    event.update(members);
    append(out, type, event);
  }
  std::string item_id() const {
    return open_ == Item::reasoning ? reasoning_id_
           : open_ == Item::message ? message_id_
                                    : "fc_" + call_.id;
  }

  void open(Item kind, std::string& out) {
    if (open_ == kind) return;
    close_item(out);
    open_ = kind;
    const Json item = kind == Item::reasoning ? reasoning_item("", "in_progress")
                      : kind == Item::message ? message_item(Json::array(), "in_progress")
                                              : call_item(call_, "in_progress");
    append(out, "response.output_item.added", {{"output_index", index_}, {"item", item}});
    if (kind == Item::message) {
      append_at(out, "response.content_part.added",
                {{"content_index", 0}, {"part", text_part("")}});
    }
  }
  void close_item(std::string& out) {
    Json item;
    switch (open_) {
      case Item::none:
        return;
      case Item::reasoning:
        append_at(out, "response.reasoning_text.done", {{"content_index", 0}, {"text", text_}});
        item = reasoning_item(text_, "completed");
        break;
      case Item::message:
        append_at(out, "response.output_text.done",
                  {{"content_index", 0}, {"text", text_}, {"logprobs", Json::array()}});
        append_at(out, "response.content_part.done",
                  {{"content_index", 0}, {"part", text_part(text_)}});
        item = message_item(Json::array({text_part(text_)}), "completed");
        break;
      case Item::call:
        call_.arguments = text_;
        append_at(out, "response.function_call_arguments.done",
                  {{"name", call_.name}, {"arguments", text_}});
        item = call_item(call_, "completed");
        break;
    }
    append(out, "response.output_item.done", {{"output_index", index_}, {"item", item}});
    open_ = Item::none;
    text_.clear();
    ++index_;
  }

  std::string model_;
  Json echo_;
  std::string id_, message_id_, reasoning_id_;
  std::int64_t created_;
  std::int64_t sequence_ = 0;
  Item open_ = Item::none;
  std::size_t index_ = 0;  // Of the open item, else of the next.
  std::string text_;       // Of the open item.
  Call call_;              // That is open.
};

}  // namespace

std::unique_ptr<Exchange> create_response(const Json& body, const Context& context) {
  Chat chat = read_chat(chat_of_response(body), context);
  auto format = std::make_unique<ResponsesFormat>(context, std::move(chat.parser), echo_of(body));
  return launch(context, std::move(chat.request), 1, std::move(format), chat.options);
}

std::unique_ptr<Exchange> response_input_tokens(const Json& body, const Context& context) {
  return ready_exchange(
      Head{}, dump({{"object", "response.input_tokens"},
                    {"input_tokens", count_chat_tokens(chat_of_response(body), context)}}));
}

}  // namespace fermata::api
