#include "api/chat_request.h"

#include "api/chat_messages.h"
#include "api/error.h"
#include "api/launch.h"
#include "api/response_format.h"
#include "base/random.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

namespace fermata::api {
namespace {

constexpr auto reasoning_formats =
    std::to_array<std::string_view>({"auto", "none", "deepseek", "deepseek-legacy"});
constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr int mark_length = 24;

// Fields that change nothing here, of the type that OpenAI gives them.
void check_idle_fields(const Fields& fields) {
  for (const char* name :
       {"model", "user", "service_tier", "safety_identifier", "verbosity", "prompt_cache_key"}) {
    static_cast<void>(fields.string(name, ""));
  }
  static_cast<void>(fields.boolean("store", false));
  if (const Json* metadata = fields.find("metadata"); metadata && !metadata->is_object()) {
    throw bad_request("metadata: must be an object");
  }
  for (const std::string& modality : fields.strings("modalities", {}, 8)) {
    if (modality == "text") continue;
    throw ApiError{.type = ErrorType::not_supported,
                   .message = fmt::format("modalities: '{}' is not supported", modality)};
  }
}

// Without any of its own a request has the server's grammar, but for calls of tools.
void read_constraints(const Fields& fields, const Tools& tools, const std::string& default_grammar,
                      engine::ChatInput& input) {
  input.grammar = fields.string("grammar", "");
  input.json_schema = read_response_format(fields);
  if (const Json* schema = fields.find("json_schema")) {
    if (!schema->is_object()) throw bad_request("json_schema: must be an object");
    if (input.json_schema.empty()) input.json_schema = dump(*schema);
  }
  if (!input.grammar.empty() && !input.json_schema.empty()) {
    throw bad_request("json_schema: Cannot use both json_schema and grammar");
  }
  if (!tools.may_be_called()) {
    if (input.grammar.empty() && input.json_schema.empty()) input.grammar = default_grammar;
    return;
  }
  const char* what = nullptr;
  if (!input.json_schema.empty()) {
    what = fields.has("json_schema") ? "json_schema" : "response_format";
  }
  if (!input.grammar.empty()) what = "grammar";
  if (what != nullptr) {
    throw bad_request(std::string(what) + ": Cannot use custom grammar constraints with tools.");
  }
}

// The server's own arguments of the template, then the request's.
void read_template_kwargs(const Fields& fields, const Context& context, engine::ChatInput& input) {
  const auto merge = [&](const Json& kwargs) {
    for (const auto& [key, value] : kwargs.items()) input.template_kwargs[key] = dump(value);
  };
  const std::string& own = context.settings->chat.template_kwargs;
  if (!own.empty()) merge(Json::parse(own));
  if (const Json* kwargs = fields.find("chat_template_kwargs")) {
    if (!kwargs->is_object()) throw bad_request("chat_template_kwargs: must be an object");
    merge(*kwargs);
  }
}

void read_effort(const std::string& effort, engine::ChatInput& input) {
  if (effort == "none") {
    input.enable_thinking = false;
    input.template_kwargs.erase("reasoning_effort");
  } else if (!effort.empty()) {
    input.template_kwargs["reasoning_effort"] = dump(Json(effort));
  }
}

void read_reasoning(const Fields& fields, const Context& context, engine::ChatInput& input) {
  const settings::ChatSettings& settings = context.settings->chat;
  input.reasoning_format = fields.string("reasoning_format", settings.reasoning_format);
  if (std::find(reasoning_formats.begin(), reasoning_formats.end(), input.reasoning_format) ==
      reasoning_formats.end()) {
    throw bad_request("reasoning_format: must be auto, none, deepseek or deepseek-legacy");
  }
  input.enable_thinking = settings.reasoning != "off";
  if (settings.reasoning_effort != "default") read_effort(settings.reasoning_effort, input);
  read_template_kwargs(fields, context, input);
  if (const auto thinking = input.template_kwargs.find("enable_thinking");
      thinking != input.template_kwargs.end()) {
    if (thinking->second != "true" && thinking->second != "false") {
      throw bad_request("chat_template_kwargs: enable_thinking must be true or false");
    }
    input.enable_thinking = thinking->second == "true";
  }
  read_effort(fields.string("reasoning_effort", ""), input);
  if (!input.enable_thinking) input.template_kwargs["enable_thinking"] = "false";

  std::int64_t budget = settings.reasoning_budget;
  for (const char* name : {"thinking_budget_tokens", "reasoning_budget_tokens"}) {
    budget = fields.integer(name, budget, -1, int_max);
  }
  input.reasoning_budget = static_cast<std::int32_t>(budget);
  input.reasoning_budget_message =
      fields.string("reasoning_budget_message", settings.reasoning_budget_message);
}

// Whether the last message is to be gone on with.
void read_continuation(const Fields& fields, const Context& context, const Json& messages,
                       engine::ChatInput& input) {
  input.continue_final_message = fields.boolean("continue_final_message", false);
  const auto is_assistant = [&](std::size_t from_end) {
    return messages.size() >= from_end &&
           messages[messages.size() - from_end]["role"] == "assistant";
  };
  input.add_generation_prompt =
      fields.boolean("add_generation_prompt", !input.continue_final_message);
  if (input.continue_final_message && !is_assistant(1)) {
    throw bad_request("continue_final_message: the last message is not the assistant's");
  }
  if (!input.continue_final_message && context.settings->chat.prefill_assistant &&
      is_assistant(1)) {
    if (is_assistant(2)) {
      throw bad_request(
          "messages: Cannot have 2 or more assistant messages at the end of the list.");
    }
    input.continue_final_message = true;
    input.add_generation_prompt = false;
  }
  if (input.continue_final_message && input.add_generation_prompt) {
    throw bad_request(
        "continue_final_message: Cannot set both add_generation_prompt and "
        "continue_final_message to true.");
  }
  if (input.continue_final_message && messages.back().contains("tool_calls")) {
    throw bad_request("messages: Cannot continue an assistant message that contains tool calls.");
  }
}

// What the template asks of the sampler; grammar and schema of the request came back with it.
void set_constraints(SamplingParams&& from, SamplingParams& out) {
  out.grammar = std::move(from.grammar);
  out.grammar_origin = from.grammar_origin;
  out.grammar_lazy = from.grammar_lazy;
  out.grammar_triggers = std::move(from.grammar_triggers);
  out.preserved_tokens = std::move(from.preserved_tokens);
  out.generation_prompt = std::move(from.generation_prompt);
  out.reasoning_start = std::move(from.reasoning_start);
  out.reasoning_ends = std::move(from.reasoning_ends);
  out.reasoning_budget = from.reasoning_budget;
  out.reasoning_budget_message = std::move(from.reasoning_budget_message);
}

EndThoughts read_reasoning_control(const Fields& fields, SamplingParams& sampling) {
  const bool wanted = fields.boolean("reasoning_control", false);
  sampling.reasoning_control = wanted && !sampling.reasoning_start.empty();
  return sampling.reasoning_control ? std::make_shared<std::atomic<bool>>(false) : nullptr;
}

}  // namespace

RenderedChat render_chat(const Fields& fields, const Context& context) {
  check_idle_fields(fields);
  engine::ChatInput input;
  Json messages = read_messages(fields);
  // Nobody guesses it, so that no message holds it.
  const std::string mark = random_alphanumeric(mark_length);
  context.control_texts->mark(messages, mark);
  const auto caps = context.vocabulary->chat_template_caps();
  const auto parallel = caps.find("supports_parallel_tool_calls");
  const Tools tools = read_tools(fields, parallel != caps.end() && parallel->second);
  input.messages_json = dump(messages);
  if (!tools.list.empty()) input.tools_json = dump(tools.list);
  input.tool_choice = tools.choice;
  input.parallel_tool_calls = tools.are_parallel;
  input.parse_reply = !context.settings->chat.skip_parsing;
  read_constraints(fields, tools, context.settings->sampling.grammar, input);
  read_reasoning(fields, context, input);
  read_continuation(fields, context, messages, input);
  auto prompt = context.vocabulary->apply_template(input);
  if (prompt) {
    return {cut_at(prompt->prompt, mark), std::move(prompt->stop), std::move(prompt->constraints),
            std::move(prompt->parser)};
  }
  // The schema has the name of the field that it came by.
  std::string message = cut_at(prompt.error().message, mark).text;
  constexpr std::string_view schema = "json_schema";
  if (message.starts_with(schema) && !fields.has(schema)) {
    message.replace(0, schema.size(), "response_format");
  }
  throw bad_request(message);
}

std::int64_t count_chat_tokens(const Json& body, const Context& context) {
  const RenderedChat chat = render_chat(Fields(body), context);
  return static_cast<std::int64_t>(tokenize(chat.text, *context.vocabulary).size());
}

Chat read_chat(const Json& body, const Context& context) {
  const Fields fields(body);
  Chat out;
  out.request = read_request(fields, context);
  refuse_unsupported(fields, {{"functions", Neutral::empty_list},
                              {"lora", Neutral::empty_list},
                              {"grammar_lazy", Neutral::off},
                              {"grammar_triggers", Neutral::empty_list},
                              {"preserved_tokens", Neutral::empty_list}});
  out.options = read_generation_options(fields, context);
  out.options.probabilities = read_chat_probabilities(fields, out.request.sampling);
  out.choices = read_choices(fields, context);
  RenderedChat prompt = render_chat(fields, context);
  out.request.prompt = tokenize(prompt.text, *context.vocabulary);
  out.request.stop.insert(out.request.stop.end(), prompt.stop.begin(), prompt.stop.end());
  set_constraints(std::move(prompt.constraints), out.request.sampling);
  out.end_thoughts = read_reasoning_control(fields, out.request.sampling);
  out.request.end_thoughts = out.end_thoughts;
  out.parser = std::move(prompt.parser);
  return out;
}

std::string find_chat_settings_fault(const settings::ChatSettings& settings) {
  if (settings.template_kwargs.empty()) return "";
  const Json kwargs = Json::parse(settings.template_kwargs, nullptr, false);
  if (!kwargs.is_object()) return "--chat-template-kwargs: must be a JSON object";
  return "";
}

}  // namespace fermata::api
