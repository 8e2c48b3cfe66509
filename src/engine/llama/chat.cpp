#include "engine/llama/chat.h"

#include "engine/llama/deep_stack.h"
#include "engine/llama/grammar_guard.h"
#include "engine/llama/schema_guard.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <common.h>
#include <json-schema-to-grammar.h>
#include <json.h>

namespace fermata::engine::llama {
namespace {

constexpr std::size_t message_bytes_max = 240;

// A fault that begins with the field already.
struct Named {
  std::string message;
};

// The library's reasons quote what the client sent, which may be long.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() <= message_bytes_max) return text;
  std::size_t end = message_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

// A model can be made to open brackets without end. Counted without regard to strings: a reply need
// not be JSON.
bool nests_too_deep(const std::string& reply) {
  int depth = 0;
  for (const char c : reply) {
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > 2 * json_nesting_max) return true;
  }
  return false;
}

class LlamaReplyParser final : public ReplyParser {
 public:
  // Of a begun message the beginning is no part of the reply.
  explicit LlamaReplyParser(common_chat_parser_params params) : params_(std::move(params)) {
    if (!params_.is_continuation) return;
    if (auto begun = try_parse("", true)) begun_ = *std::move(begun);
  }

  Message parse(const std::string& reply, bool partial) const override {
    // The library parses nested values by recursion.
    if (!nests_too_deep(reply)) {
      if (auto message = try_parse(reply, partial)) return *std::move(message);
      // A whole reply that breaks off in a call or in thoughts, or goes wrong after them.
      if (auto message = partial ? std::nullopt : try_parse(reply, true)) {
        if (!message->tool_calls.empty() || !message->reasoning.empty()) return *std::move(message);
      }
    }
    return Message{.content = reply, .reasoning = "", .tool_calls = {}};
  }
  bool is_plain() const override { return false; }

 private:
  std::optional<Message> try_parse(const std::string& reply, bool partial) const {
    try {
      const common_chat_msg parsed = common_chat_parse(reply, partial, params_);
      Message out;
      out.content = without(begun_.content, parsed.render_content());
      out.reasoning = without(begun_.reasoning, parsed.reasoning_content);
      for (const common_chat_tool_call& call : parsed.tool_calls) {
        out.tool_calls.push_back(ToolCall{call.id, call.name, call.arguments});
      }
      return out;
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  static std::string without(const std::string& beginning, const std::string& text) {
    return text.starts_with(beginning) ? text.substr(beginning.size()) : text;
  }

  const common_chat_parser_params params_;
  Message begun_;
};

class PlainReplyParser final : public ReplyParser {
 public:
  Message parse(const std::string& reply, bool /*partial*/) const override {
    return Message{.content = reply, .reasoning = "", .tool_calls = {}};
  }
  bool is_plain() const override { return true; }
};

// Whether a parser of the library's takes all that follows the generation prompt as content, and
// nothing else. One of another shape that does the same counts as one that does not.
bool takes_all_as_content(const common_chat_params& applied) {
  constexpr std::size_t bytes_max = 4096;  // Of such a parser; others are long.
  if (applied.format == COMMON_CHAT_FORMAT_CONTENT_ONLY) return true;
  if (applied.parser.empty() || applied.parser.size() > bytes_max) return false;
  const common_json parser = common_json::parse(applied.parser);
  int contents = 0, literals = 0;
  for (const common_json& part : parser.at("parsers")) {
    const auto type = part.at("type").get<std::string>();
    if (type == "epsilon" || type == "end" || type == "sequence") continue;
    if (type == "until" && part.at("delimiters").empty()) continue;
    if (type == "tag" && part.at("tag").get<std::string>() == "content") {
      ++contents;
    } else if (type == "literal" &&
               part.at("literal").get<std::string>() == applied.generation_prompt) {
      ++literals;
    } else {
      return false;
    }
  }
  return contents == 1 && literals <= 1;
}

std::string find_fault(const ChatInput& input) {
  const auto nested = [](const char* field, const std::string& json) {
    const std::string fault = find_nesting_fault(json);
    return fault.empty() ? fault : std::string(field) + ": " + fault;
  };
  if (auto fault = nested("messages", input.messages_json); !fault.empty()) return fault;
  if (auto fault = nested("tools", input.tools_json); !fault.empty()) return fault;
  if (auto fault = nested("json_schema", input.json_schema); !fault.empty()) return fault;
  for (const auto& [key, value] : input.template_kwargs) {
    if (auto fault = nested("chat_template_kwargs", value); !fault.empty()) return fault;
  }
  if (input.json_schema.size() > schema_bytes_max || input.tools_json.size() > schema_bytes_max) {
    return "tools or json_schema: longer than " + std::to_string(schema_bytes_max) + " bytes";
  }
  if (input.continue_final_message && input.add_generation_prompt) {
    return "continue_final_message: add_generation_prompt cannot be true with it";
  }
  return "";
}

// The schema of each tool's arguments. A tool is not the client's own, often: what its schema asks
// beyond the library's means is left to the model.
void check_tools(common_json& tools) {
  for (std::size_t i = 0; i < tools.size(); ++i) {
    common_json& tool = tools.at(i);
    if (!tool.is_object() || !tool.contains("function")) continue;
    common_json& function = tool.at("function");
    if (!function.is_object() || !function.contains("parameters")) continue;
    relax_schema(function.at("parameters"));
    if (const std::string fault = find_schema_fault(function.at("parameters")); !fault.empty()) {
      throw Named{"tools[" + std::to_string(i) + "].function.parameters: " + fault};
    }
  }
}

common_chat_templates_inputs library_inputs(const ChatInput& input) {
  common_chat_templates_inputs out;
  out.messages = common_chat_msgs_parse_oaicompat(common_json::parse(input.messages_json));
  if (!input.tools_json.empty()) {
    common_json tools = common_json::parse(input.tools_json);
    check_tools(tools);
    out.tools = common_chat_tools_parse_oaicompat(tools);
  }
  out.tool_choice = common_chat_tool_choice_parse_oaicompat(input.tool_choice);
  if (!input.json_schema.empty()) {
    const std::string fault = find_schema_fault(common_json::parse(input.json_schema));
    if (!fault.empty()) throw Named{"json_schema: " + fault};
  }
  out.json_schema = input.json_schema;
  out.grammar = input.grammar;
  out.use_jinja = true;
  out.parallel_tool_calls = input.parallel_tool_calls;
  out.add_generation_prompt = input.add_generation_prompt;
  out.continue_final_message =
      input.continue_final_message ? COMMON_CHAT_CONTINUATION_AUTO : COMMON_CHAT_CONTINUATION_NONE;
  out.reasoning_format = common_reasoning_format_from_name(input.reasoning_format);
  out.enable_thinking = input.enable_thinking;
  out.force_pure_content = !input.parse_reply;
  out.chat_template_kwargs = input.template_kwargs;
  if (input.continue_final_message && !out.messages.empty() &&
      !out.messages.back().tool_calls.empty()) {
    throw Named{"messages: an assistant message with tool calls cannot be continued"};
  }
  return out;
}

GrammarTrigger::Kind our_kind(common_grammar_trigger_type type) {
  switch (type) {
    case COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN:
      return GrammarTrigger::Kind::token;
    case COMMON_GRAMMAR_TRIGGER_TYPE_WORD:
      return GrammarTrigger::Kind::word;
    case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN:
      return GrammarTrigger::Kind::pattern;
    case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL:
      return GrammarTrigger::Kind::pattern_full;
  }
  return GrammarTrigger::Kind::word;
}

// A word that is one token is watched for as that token.
void set_triggers(const llama_vocab* vocab, const common_chat_params& from, SamplingParams& out) {
  const auto single = [&](const std::string& text) {
    const std::vector<llama_token> tokens = common_tokenize(vocab, text, false, true);
    return tokens.size() == 1 ? tokens.front() : LLAMA_TOKEN_NULL;
  };
  for (const std::string& text : from.preserved_tokens) {
    const llama_token token = single(text);
    if (token != LLAMA_TOKEN_NULL) out.preserved_tokens.push_back(TokenId{token});
  }
  for (const common_grammar_trigger& trigger : from.grammar_triggers) {
    GrammarTrigger ours{our_kind(trigger.type), trigger.value, TokenId{trigger.token}};
    if (ours.kind == GrammarTrigger::Kind::word) {
      const llama_token token = single(trigger.value);
      if (token != LLAMA_TOKEN_NULL) {
        ours.kind = GrammarTrigger::Kind::token;
        ours.token = TokenId{token};
      }
    }
    out.grammar_triggers.push_back(std::move(ours));
  }
}

// Empty, or why there is no grammar.
std::string set_grammar(const ChatInput& input, const common_chat_params& from,
                        SamplingParams& out) {
  if (!input.grammar.empty()) {
    out.grammar = input.grammar;
    out.grammar_origin = GrammarOrigin::client;
  } else if (!from.grammar.empty()) {
    out.grammar = from.grammar;
    out.grammar_origin =
        input.json_schema.empty() ? GrammarOrigin::tool_calls : GrammarOrigin::json_schema;
    out.grammar_lazy = from.grammar_lazy;
  } else if (!input.json_schema.empty()) {
    auto grammar = grammar_of_schema(input.json_schema);
    if (!grammar) return grammar.error().message;
    out.grammar = std::move(grammar).value();
    out.grammar_origin = GrammarOrigin::json_schema;
  }
  return "";
}

std::shared_ptr<const ReplyParser> make_parser(const ChatInput& input,
                                               const common_chat_params& from) {
  if (!input.parse_reply || (input.tools_json.empty() && takes_all_as_content(from))) {
    return std::make_shared<PlainReplyParser>();
  }
  common_chat_parser_params params(from);
  params.reasoning_format = common_reasoning_format_from_name(input.reasoning_format);
  params.parse_tool_calls = !input.tools_json.empty() && input.tool_choice != "none";
  params.is_continuation = input.continue_final_message;
  if (!from.parser.empty()) params.parser.load(from.parser);
  return std::make_shared<LlamaReplyParser>(std::move(params));
}

// Which field the library means.
std::string field_of(const ChatInput& input, std::string_view what) {
  const bool is_schema = what.find("JSON schema") != std::string_view::npos;
  if (is_schema) return input.json_schema.empty() ? "tools" : "json_schema";
  return "messages";
}

}  // namespace

Result<std::string, SamplerFault> grammar_of_schema(const std::string& schema_json) {
  const auto fault = [](const std::string& what) {
    return Err{SamplerFault{"json_schema: " + one_line(what), "json_schema"}};
  };
  if (std::string what = find_nesting_fault(schema_json); !what.empty()) return fault(what);
  if (schema_json.size() > schema_bytes_max) {
    return fault("longer than " + std::to_string(schema_bytes_max) + " bytes");
  }
  try {
    const common_json schema = common_json::parse(schema_json);
    if (std::string what = find_schema_fault(schema); !what.empty()) return fault(what);
    std::string grammar;
    // Chains of references recurse once each.
    const bool ran =
        run_on_deep_stack(deep_text_bytes, [&] { grammar = json_schema_to_grammar(schema); });
    if (!ran) return fault("no memory to convert it");
    if (grammar.size() > grammar_bytes_max) return fault("its grammar is too long");
    return grammar;
  } catch (const std::exception& e) {
    return fault(e.what());
  }
}

Result<ChatTemplate, std::string> ChatTemplate::make(const llama_model* model,
                                                     const std::string& override_text) {
  try {
    common_chat_templates_ptr templates = common_chat_templates_init(model, override_text);
    std::string source = common_chat_templates_source(templates.get());
    return ChatTemplate(std::move(templates), std::move(source));
  } catch (const std::exception& e) {
    return Err{one_line(e.what())};
  }
}

Result<ChatPrompt, ChatFault> ChatTemplate::apply(const llama_vocab* vocab,
                                                  const ChatInput& input) const {
  if (std::string what = find_fault(input); !what.empty()) return Err{ChatFault{std::move(what)}};
  try {
    common_chat_params applied;
    const common_chat_templates_inputs inputs = library_inputs(input);
    // Schemas of tools are converted on the way, by recursion.
    const auto work = [&] { applied = common_chat_templates_apply(templates_.get(), inputs); };
    const bool has_schemas = !input.tools_json.empty() || !input.json_schema.empty();
    if (!has_schemas) {
      work();
    } else if (!run_on_deep_stack(deep_text_bytes, work)) {
      return Err{ChatFault{"tools: no memory to convert the schemas"}};
    }
    ChatPrompt out;
    out.prompt = applied.prompt;
    out.stop = applied.additional_stops;
    out.constraints.generation_prompt = applied.generation_prompt;
    out.constraints.reasoning_start = applied.thinking_start_tag;
    out.constraints.reasoning_ends = applied.thinking_end_tags;
    out.constraints.reasoning_budget = input.reasoning_budget;
    out.constraints.reasoning_budget_message = input.reasoning_budget_message;
    if (std::string what = set_grammar(input, applied, out.constraints); !what.empty()) {
      return Err{ChatFault{std::move(what)}};
    }
    set_triggers(vocab, applied, out.constraints);
    out.parser = make_parser(input, applied);
    return out;
  } catch (const Named& fault) {
    return Err{ChatFault{one_line(fault.message)}};
  } catch (const std::exception& e) {
    return Err{ChatFault{one_line(field_of(input, e.what()) + ": " + e.what())}};
  }
}

std::map<std::string, bool> ChatTemplate::caps() const {
  return common_chat_templates_get_caps(templates_.get());
}

}  // namespace fermata::engine::llama
