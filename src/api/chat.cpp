#include "api/chat.h"

#include "api/error.h"
#include "api/launch.h"
#include "base/clock.h"
#include "base/random.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fermata::api {
namespace {

constexpr std::size_t messages_max = 16'384;
constexpr auto roles =
    std::to_array<std::string_view>({"system", "developer", "user", "assistant", "tool"});

void check_content(const Json& message, const std::string& where) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) {
    if (message.contains("tool_calls") || message.value("role", "") == "assistant") return;
    throw bad_request(where + ".content: is missing");
  }
  if (content->is_string()) return;
  if (!content->is_array()) {
    throw bad_request(where + ".content: must be a text or a list of parts");
  }
  for (const Json& part : *content) {
    if (!part.is_object()) throw bad_request(where + ".content: a part must be an object");
    const Fields fields(part);
    const std::string type = fields.string("type", "");
    if (type != "text") {
      throw bad_request(fmt::format("{}.content: part type '{}' is not supported", where, type));
    }
    if (!part.contains("text") || !part["text"].is_string()) {
      throw bad_request(where + ".content: a text part needs a text");
    }
  }
}

// The messages as the template wants them, each checked.
Json read_messages(const Fields& fields) {
  const Json* messages = fields.find("messages");
  if (messages == nullptr) throw bad_request("messages: is missing");
  if (!messages->is_array() || messages->empty()) {
    throw bad_request("messages: must be a list of at least one message");
  }
  if (messages->size() > messages_max) {
    throw bad_request("messages: more than " + std::to_string(messages_max));
  }
  Json out = Json::array();
  for (std::size_t i = 0; i < messages->size(); ++i) {
    Json message = (*messages)[i];
    const std::string where = "messages[" + std::to_string(i) + "]";
    if (!message.is_object()) throw bad_request(where + ": must be an object");
    if (!message.contains("role") || !message["role"].is_string()) {
      throw bad_request(where + ".role: must be a text");
    }
    const auto role = message["role"].get<std::string>();
    if (std::find(roles.begin(), roles.end(), role) == roles.end()) {
      throw bad_request(fmt::format("{}.role: '{}' is not a role", where, role));
    }
    check_content(message, where);
    // OpenAI's newer name for the same part; templates know the older one.
    if (role == "developer") message["role"] = "system";
    out.push_back(std::move(message));
  }
  return out;
}

engine::ChatPrompt render(const Json& body, const Context& context) {
  const Fields fields(body);
  engine::ChatInput input;
  const Json messages = read_messages(fields);
  input.messages_json = dump(messages);
  input.add_generation_prompt = fields.boolean("add_generation_prompt", true);
  if (const Json* kwargs = fields.find("chat_template_kwargs")) {
    if (!kwargs->is_object()) throw bad_request("chat_template_kwargs: must be an object");
    for (const auto& [key, value] : kwargs->items()) input.template_kwargs[key] = dump(value);
  }
  input.reasoning_format = context.settings->chat.reasoning_format;
  auto prompt = context.vocabulary->apply_template(input);
  if (!prompt) throw bad_request("messages: " + prompt.error().message);
  return std::move(prompt).value();
}

class ChatFormat final : public ReplyFormat {
 public:
  ChatFormat(const Context& context, bool usage)
      : usage_(usage),
        base_{{"id", "chatcmpl-" + random_alphanumeric(32)},
              {"object", "chat.completion.chunk"},
              {"created", wall_clock_seconds()},
              {"model", context.model_name},
              {"system_fingerprint", context.build}} {
    // Every token's chunk is the same but for its text and probabilities.
    const std::string rest = dump(base_);
    chunk_tail_ = ",\"finish_reason\":null}]," + rest.substr(1);
  }

  void begin(std::size_t i, std::string& out) override {
    append_event(out, chunk(base_, i, {{"role", "assistant"}, {"content", ""}}, nullptr));
  }
  void progress(std::size_t i, std::string_view progress, std::string& out) override {
    std::string event = chunk(base_, i, Json::object(), nullptr);
    append_member(event, "prompt_progress", progress);
    append_event(out, event);
  }
  void token(std::size_t i, const TokenEvent&, const Shown& shown, std::string& out) override {
    if (!shown.text.empty()) append_content(i, shown, out);
  }
  void end(const Outcome& outcome, const Shown& tail, std::string& out) override {
    const std::size_t i = outcome.index;
    if (!tail.text.empty() || !tail.probabilities.empty()) append_content(i, tail, out);
    Json last = base_;
    if (!usage_) add_figures(last, outcome.final);
    append_event(out, chunk(last, i, Json::object(), finish_reason_name(outcome.final.reason)));
  }
  void close(std::span<const Outcome> choices, std::string& out) override {
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
  std::string whole(std::span<const Outcome> choices) override {
    const FinalEvent final = total(choices);
    Json out = base_;
    out["object"] = "chat.completion";
    out["usage"] = usage_json(final.timings, final.prompt_tokens);
    add_figures(out, final);
    std::string texts;
    for (const Outcome& choice : choices) {
      if (!texts.empty()) texts += ',';
      texts += choice_text({{"index", choice.index},
                            {"message", {{"role", "assistant"}, {"content", choice.text}}},
                            {"finish_reason", finish_reason_name(choice.final.reason)}},
                           choice.probabilities);
    }
    return with_choices(out, texts);
  }

 private:
  void append_content(std::size_t i, const Shown& shown, std::string& out) const {
    out += "data: {\"choices\":[{\"index\":" + std::to_string(i);
    out += ",\"delta\":{\"content\":";
    append_quoted(out, shown.text);
    out += '}';
    if (!shown.probabilities.empty()) {
      out += ",\"logprobs\":{\"content\":";
      out += shown.probabilities;
      out += '}';
    }
    out += chunk_tail_;
    if (!shown.timings.empty()) append_member(out, "timings", shown.timings);
    out += "\n\n";
  }
  static std::string chunk(const Json& rest, std::size_t i, const Json& delta,
                           const Json& finish_reason) {
    const Json choice = {{"index", i}, {"delta", delta}, {"finish_reason", finish_reason}};
    return with_choices(rest, dump(choice));
  }

  bool usage_;
  Json base_;
  std::string chunk_tail_;
};

}  // namespace

std::unique_ptr<Exchange> chat_completion(const Json& body, const Context& context) {
  const Fields fields(body);
  Request request = read_request(fields, context);
  refuse_unsupported(fields, {{"tools", Neutral::empty_list},
                              {"functions", Neutral::empty_list},
                              {"lora", Neutral::empty_list},
                              {"response_format", Neutral::text_type},
                              {"grammar_lazy", Neutral::off},
                              {"grammar_triggers", Neutral::empty_list},
                              {"preserved_tokens", Neutral::empty_list}});
  GenerationOptions options = read_generation_options(fields, context);
  options.probabilities = read_chat_probabilities(fields, request.sampling);
  const engine::ChatPrompt prompt = render(body, context);
  request.prompt = context.vocabulary->tokenize(prompt.prompt, true, true);
  request.stop.insert(request.stop.end(), prompt.stop.begin(), prompt.stop.end());
  return launch(context, std::move(request), read_choices(fields, context),
                std::make_unique<ChatFormat>(context, wants_usage(fields)), options);
}

std::unique_ptr<Exchange> apply_template(const Json& body, const Context& context) {
  const engine::ChatPrompt prompt = render(body, context);
  return ready_exchange(Head{}, dump({{"prompt", prompt.prompt}}));
}

}  // namespace fermata::api
