#include "api/responses_request.h"

#include "api/chat_messages.h"
#include "api/error.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

namespace fermata::api {
namespace {

constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();

std::string text_member(const Json& object, const char* name, const std::string& where) {
  const Json* value = Fields(object).find(name);
  if (value == nullptr || !value->is_string()) {
    throw bad_request(fmt::format("{}.{}: must be a text", where, name));
  }
  return value->get<std::string>();
}

// The text of a part, whatever the part is called.
std::string part_text(const Json& part, const std::string& where) {
  if (!part.is_object()) throw bad_request(where + ": must be an object");
  const std::string type = text_member(part, "type", where);
  if (type == "input_text" || type == "output_text" || type == "text" || type == "reasoning_text" ||
      type == "summary_text") {
    return text_member(part, "text", where);
  }
  if (type == "refusal") return text_member(part, "refusal", where);
  if (type == "input_image" || type == "input_file" || type == "input_audio") {
    throw ApiError{.type = ErrorType::not_supported,
                   .message = fmt::format("{}: {} parts are not supported", where, type)};
  }
  throw bad_request(fmt::format("{}: part type '{}' is not supported", where, type));
}

Json read_content(const Json& item, const char* name, const std::string& where) {
  const Json* content = Fields(item).find(name);
  const std::string here = fmt::format("{}.{}", where, name);
  if (content == nullptr) throw bad_request(here + ": is missing");
  if (content->is_string()) return *content;
  if (!content->is_array()) throw bad_request(here + ": must be a text or a list of parts");
  if (content->size() == 1) return part_text((*content)[0], here + "[0]");
  Json out = Json::array();
  for (std::size_t i = 0; i < content->size(); ++i) {
    out.push_back(
        {{"type", "text"}, {"text", part_text((*content)[i], fmt::format("{}[{}]", here, i))}});
  }
  return out;
}

// Thoughts, text and calls of one turn are items of their own here, and one message in a chat.
class Messages {
 public:
  void add(const Json& item, const std::string& where) {
    if (!item.is_object()) throw bad_request(where + ": must be an object");
    const std::string type =
        Fields(item).has("type") ? text_member(item, "type", where) : std::string("message");
    if (type == "message") {
      add_message(item, where);
    } else if (type == "reasoning") {
      turn()["reasoning_content"] = read_reasoning(item, where);
    } else if (type == "function_call") {
      add_call(item, where);
    } else if (type == "function_call_output") {
      list_.push_back({{"role", "tool"},
                       {"tool_call_id", text_member(item, "call_id", where)},
                       {"content", read_content(item, "output", where)}});
    } else {
      throw bad_request(fmt::format("{}.type: '{}' is not supported", where, type));
    }
    if (list_.size() > messages_max) {
      throw bad_request("input: more than " + std::to_string(messages_max) + " messages");
    }
  }
  void add_text(const char* role, const Json& content) {
    list_.push_back({{"role", role}, {"content", content}});
  }
  Json take() { return std::move(list_); }

 private:
  // The assistant's message that is being put together.
  Json& turn() {
    if (list_.empty() || list_.back()["role"] != "assistant") add_text("assistant", "");
    return list_.back();
  }
  void add_message(const Json& item, const std::string& where) {
    const std::string role = text_member(item, "role", where);
    Json content = read_content(item, "content", where);
    const bool begun = role == "assistant" && !list_.empty() &&
                       list_.back()["role"] == "assistant" && list_.back()["content"] == "" &&
                       !list_.back().contains("tool_calls");
    if (begun) {
      list_.back()["content"] = std::move(content);
    } else {
      list_.push_back({{"role", role}, {"content", std::move(content)}});
    }
  }
  void add_call(const Json& item, const std::string& where) {
    Json& calls = turn()["tool_calls"];
    if (calls.is_null()) calls = Json::array();
    calls.push_back({{"id", text_member(item, "call_id", where)},
                     {"type", "function"},
                     {"function",
                      {{"name", text_member(item, "name", where)},
                       {"arguments", text_member(item, "arguments", where)}}}});
  }
  static std::string read_reasoning(const Json& item, const std::string& where) {
    std::string out;
    for (const char* name : {"content", "summary"}) {
      const Json* parts = Fields(item).find(name);
      if (parts == nullptr || !out.empty()) continue;
      if (!parts->is_array()) throw bad_request(fmt::format("{}.{}: must be a list", where, name));
      for (const Json& part : *parts) out += part_text(part, where + '.' + name);
    }
    return out;
  }

  Json list_ = Json::array();
};

Json read_input(const Fields& fields) {
  Messages out;
  if (const std::string instructions = fields.string("instructions", ""); !instructions.empty()) {
    out.add_text("system", instructions);
  }
  const Json* input = fields.find("input");
  if (input == nullptr) throw bad_request("input: is missing");
  if (input->is_string()) {
    out.add_text("user", *input);
  } else if (input->is_array() && !input->empty()) {
    for (std::size_t i = 0; i < input->size(); ++i) {
      out.add((*input)[i], fmt::format("input[{}]", i));
    }
  } else {
    throw bad_request("input: must be a text or a list of at least one item");
  }
  return out.take();
}

Json read_tools_of(const Json& tools) {
  if (!tools.is_array()) throw bad_request("tools: must be a list");
  Json out = Json::array();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    if (!tools[i].is_object()) throw bad_request(where + ": must be an object");
    const std::string type = text_member(tools[i], "type", where);
    if (type != "function") {
      throw bad_request(fmt::format("{}.type: '{}' is not supported", where, type));
    }
    Json function = tools[i];
    function.erase("type");
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

Json read_tool_choice(const Json& choice) {
  if (!choice.is_object()) return choice;
  if (text_member(choice, "type", "tool_choice") != "function") {
    throw bad_request("tool_choice: type must be function");
  }
  return {{"type", "function"},
          {"function", {{"name", text_member(choice, "name", "tool_choice")}}}};
}

// text.format: the schema lies one level higher than in a chat.
Json read_format(const Json& text) {
  if (!text.is_object()) throw bad_request("text: must be an object");
  const Json* format = Fields(text).find("format");
  if (format == nullptr) return nullptr;
  if (!format->is_object()) throw bad_request("text.format: must be an object");
  if (text_member(*format, "type", "text.format") != "json_schema") return *format;
  Json inner = *format;
  inner.erase("type");
  return {{"type", "json_schema"}, {"json_schema", std::move(inner)}};
}

// What would need replies to be kept.
void refuse_state(const Fields& fields) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"}) {
    if (!fields.has(name)) continue;
    throw bad_request(std::string(name) +
                      ": is not supported, this server keeps no replies; send the whole input");
  }
  if (fields.boolean("background", false)) {
    throw bad_request("background: is not supported, this server keeps no replies");
  }
}

}  // namespace

Json chat_of_response(const Json& body) {
  const Fields fields(body);
  refuse_state(fields);
  Json out = body;
  for (const char* theirs :
       {"input", "instructions", "text", "max_output_tokens", "tools", "tool_choice", "reasoning",
        "include", "truncation", "stream_options", "n", "n_cmpl", "background"}) {
    out.erase(theirs);
  }
  out["messages"] = read_input(fields);
  if (fields.has("max_output_tokens")) {
    out["max_completion_tokens"] = fields.integer("max_output_tokens", 0, 1, int_max);
  }
  if (const Json* tools = fields.find("tools")) out["tools"] = read_tools_of(*tools);
  if (const Json* choice = fields.find("tool_choice"))
    out["tool_choice"] = read_tool_choice(*choice);
  if (const Json* text = fields.find("text")) out["response_format"] = read_format(*text);
  if (const Json* reasoning = fields.find("reasoning")) {
    if (!reasoning->is_object()) throw bad_request("reasoning: must be an object");
    out["reasoning_effort"] = Fields(*reasoning).string("effort", "");
  }
  return out;
}

}  // namespace fermata::api
