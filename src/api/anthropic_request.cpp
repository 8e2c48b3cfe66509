#include "api/anthropic_request.h"

#include "api/chat_messages.h"
#include "api/error.h"

#include <limits>

#include <fmt/format.h>

namespace fermata::api {
namespace {

constexpr std::int64_t max_tokens_default = 4096;
constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t stop_sequences_max = 64;

std::string text_member(const Json& object, const char* name, const std::string& where) {
  const Json* value = Fields(object).find(name);
  if (value == nullptr || !value->is_string()) {
    throw bad_request(fmt::format("{}.{}: must be a text", where, name));
  }
  return value->get<std::string>();
}

std::string type_of(const Json& block, const std::string& where) {
  if (!block.is_object()) throw bad_request(where + ": must be an object");
  return text_member(block, "type", where);
}

[[noreturn]] void refuse(const std::string& type, const std::string& where) {
  const bool is_media = type == "image" || type == "document";
  if (is_media) {
    throw ApiError{.type = ErrorType::not_supported,
                   .message = fmt::format("{}: {} blocks are not supported", where, type)};
  }
  throw bad_request(fmt::format("{}: block type '{}' is not supported", where, type));
}

// A text, or text blocks one after the other.
std::string read_texts(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) throw bad_request(where + ": must be a text or a list of blocks");
  std::string out;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", where, i);
    const std::string type = type_of(content[i], here);
    if (type != "text") refuse(type, here);
    out += text_member(content[i], "text", here);
  }
  return out;
}

Json tool_message(const Json& block, const std::string& where) {
  const Json* content = Fields(block).find("content");
  return {
      {"role", "tool"},
      {"tool_call_id", text_member(block, "tool_use_id", where)},
      {"content", content == nullptr ? std::string() : read_texts(*content, where + ".content")}};
}

// Texts and results of tools become messages of their own, in their order.
void append_user(const Json& content, const std::string& where, Json& out) {
  Json parts = Json::array();
  const auto flush = [&] {
    if (parts.empty()) return;
    out.push_back({{"role", "user"}, {"content", parts.size() == 1 ? parts[0]["text"] : parts}});
    parts = Json::array();
  };
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", where, i);
    const std::string type = type_of(content[i], here);
    if (type == "text") {
      parts.push_back({{"type", "text"}, {"text", text_member(content[i], "text", here)}});
    } else if (type == "tool_result") {
      flush();
      out.push_back(tool_message(content[i], here));
    } else {
      refuse(type, here);
    }
  }
  flush();
}

void append_assistant(const Json& content, const std::string& where, Json& out) {
  std::string text, reasoning;
  Json calls = Json::array();
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Json& block = content[i];
    const std::string here = fmt::format("{}[{}]", where, i);
    const std::string type = type_of(block, here);
    if (type == "text") {
      text += text_member(block, "text", here);
    } else if (type == "thinking") {
      reasoning += text_member(block, "thinking", here);
    } else if (type == "tool_use") {
      const Json* input = Fields(block).find("input");
      if (input != nullptr && !input->is_object()) {
        throw bad_request(here + ".input: must be an object");
      }
      calls.push_back({{"id", text_member(block, "id", here)},
                       {"type", "function"},
                       {"function",
                        {{"name", text_member(block, "name", here)},
                         {"arguments", input == nullptr ? std::string("{}") : dump(*input)}}}});
    } else if (type != "redacted_thinking") {
      refuse(type, here);
    }
  }
  Json message = {{"role", "assistant"}, {"content", text}};
  if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  if (!calls.empty()) message["tool_calls"] = calls;
  out.push_back(std::move(message));
}

Json read_messages_of(const Json& body) {
  const Fields fields(body);
  Json out = Json::array();
  if (const Json* system = fields.find("system")) {
    const std::string text = read_texts(*system, "system");
    if (!text.empty()) out.push_back({{"role", "system"}, {"content", text}});
  }
  const Json* messages = fields.find("messages");
  if (messages == nullptr) throw bad_request("messages: is missing");
  if (!messages->is_array() || messages->empty()) {
    throw bad_request("messages: must be a list of at least one message");
  }
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const std::string where = fmt::format("messages[{}]", i);
    const Json& message = (*messages)[i];
    if (!message.is_object()) throw bad_request(where + ": must be an object");
    const std::string role = text_member(message, "role", where);
    if (role != "user" && role != "assistant") {
      throw bad_request(fmt::format("{}.role: '{}' is not a role", where, role));
    }
    const Json* content = Fields(message).find("content");
    if (content == nullptr) throw bad_request(where + ".content: is missing");
    if (content->is_string()) {
      out.push_back({{"role", role}, {"content", *content}});
    } else if (!content->is_array()) {
      throw bad_request(where + ".content: must be a text or a list of blocks");
    } else if (role == "user") {
      append_user(*content, where + ".content", out);
    } else {
      append_assistant(*content, where + ".content", out);
    }
    if (out.size() > messages_max) {
      throw bad_request("messages: more than " + std::to_string(messages_max));
    }
  }
  return out;
}

Json read_tools_of(const Json& tools) {
  if (!tools.is_array()) throw bad_request("tools: must be a list");
  Json out = Json::array();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    const Json& tool = tools[i];
    if (!tool.is_object()) throw bad_request(where + ": must be an object");
    const Fields fields(tool);
    const std::string type = fields.has("type") ? text_member(tool, "type", where) : "custom";
    if (type != "custom") {
      throw bad_request(fmt::format("{}.type: '{}' is not supported", where, type));
    }
    const Json* schema = fields.find("input_schema");
    if (schema != nullptr && !schema->is_object()) {
      throw bad_request(where + ".input_schema: must be an object");
    }
    Json function = {{"name", text_member(tool, "name", where)}};
    if (fields.has("description")) {
      function["description"] = text_member(tool, "description", where);
    }
    function["parameters"] = schema == nullptr ? Json::object() : *schema;
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

void read_tool_choice(const Json& choice, Json& out) {
  if (!choice.is_object()) throw bad_request("tool_choice: must be an object");
  const std::string type = text_member(choice, "type", "tool_choice");
  if (type == "any") {
    out["tool_choice"] = "required";
  } else if (type == "auto" || type == "none") {
    out["tool_choice"] = type;
  } else if (type == "tool") {
    out["tool_choice"] = {{"type", "function"},
                          {"function", {{"name", text_member(choice, "name", "tool_choice")}}}};
  } else {
    throw bad_request("tool_choice: type must be auto, any, tool or none");
  }
  const Fields fields(choice);
  if (fields.has("disable_parallel_tool_use")) {
    out["parallel_tool_calls"] = !fields.boolean("disable_parallel_tool_use", false);
  }
}

void read_thinking(const Json& thinking, Json& out) {
  if (!thinking.is_object()) throw bad_request("thinking: must be an object");
  const std::string type = text_member(thinking, "type", "thinking");
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    throw bad_request("thinking: type must be enabled, disabled or adaptive");
  }
  Json& kwargs = out["chat_template_kwargs"];
  if (!kwargs.is_object()) kwargs = Json::object();
  kwargs["enable_thinking"] = type != "disabled";
  if (Fields(thinking).has("budget_tokens")) {
    out["reasoning_budget_tokens"] = Fields(thinking).integer("budget_tokens", -1, 0, int_max);
  }
}

}  // namespace

std::vector<std::string> stop_sequences(const Fields& fields) {
  const Json* value = fields.find("stop_sequences");
  if (value != nullptr && !value->is_array()) {
    throw bad_request("stop_sequences: must be a list of strings");
  }
  return fields.strings("stop_sequences", {}, stop_sequences_max);
}

Json chat_of_messages(const Json& body) {
  const Fields fields(body);
  Json out = body;
  for (const char* theirs :
       {"system", "stop_sequences", "tool_choice", "thinking", "stream_options", "n", "n_cmpl",
        "stop", "max_completion_tokens", "n_predict"}) {
    out.erase(theirs);
  }
  out["messages"] = read_messages_of(body);
  out["max_tokens"] = fields.integer("max_tokens", max_tokens_default, 0, int_max);
  out["stop"] = stop_sequences(fields);
  if (const Json* tools = fields.find("tools")) out["tools"] = read_tools_of(*tools);
  if (const Json* choice = fields.find("tool_choice")) read_tool_choice(*choice, out);
  if (const Json* thinking = fields.find("thinking")) read_thinking(*thinking, out);
  return out;
}

}  // namespace fermata::api
