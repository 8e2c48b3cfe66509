#include "api/chat_messages.h"

#include "api/error.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fermata::api {
namespace {

constexpr auto roles =
    std::to_array<std::string_view>({"system", "developer", "user", "assistant", "tool"});

// The member as a text, or an error that names `where`; null and absent are the same.
void check_text(const Json& object, const char* name, const std::string& where) {
  const Json* value = Fields(object).find(name);
  if (value != nullptr && !value->is_string()) {
    throw bad_request(fmt::format("{}.{}: must be a text", where, name));
  }
}

void check_part(const Json& part, const std::string& where) {
  if (!part.is_object()) throw bad_request(where + ".content: a part must be an object");
  const Json* type = Fields(part).find("type");
  if (type == nullptr || !type->is_string()) {
    throw bad_request(where + ".content: a part needs a type");
  }
  const auto name = type->get<std::string>();
  if (name != "text" && name != "refusal") {
    throw bad_request(fmt::format("{}.content: part type '{}' is not supported", where, name));
  }
  if (!part.contains(name) || !part[name].is_string()) {
    throw bad_request(fmt::format("{}.content: a {} part needs a text", where, name));
  }
}

void read_content(Json& message, const std::string& where) {
  const Json* content = Fields(message).find("content");
  if (content == nullptr) {
    const bool may_be_empty = message["role"] == "assistant";
    if (!may_be_empty) throw bad_request(where + ".content: is missing");
    // Templates add texts; null would not do.
    message["content"] = "";
    return;
  }
  if (content->is_string()) return;
  if (!content->is_array()) {
    throw bad_request(where + ".content: must be a text or a list of parts");
  }
  for (const Json& part : *content) check_part(part, where);
  for (Json& part : message["content"]) {
    if (part["type"] == "refusal") part = {{"type", "text"}, {"text", part["refusal"]}};
  }
}

// A call of an earlier turn, whose arguments templates want as a text of JSON.
void read_call(Json& call, const std::string& where) {
  if (!call.is_object()) throw bad_request(where + ": must be an object");
  check_text(call, "id", where);
  check_text(call, "type", where);
  if (Fields(call).string("type", "function") != "function") {
    throw bad_request(where + ".type: only function is supported");
  }
  const Json* function = Fields(call).find("function");
  if (function == nullptr || !function->is_object()) {
    throw bad_request(where + ".function: must be an object");
  }
  const std::string name = Fields(*function).string("name", "");
  if (name.empty()) throw bad_request(where + ".function.name: must be a text");
  std::string arguments = "{}";
  if (const Json* given = Fields(*function).find("arguments")) {
    if (!given->is_string() && !given->is_object()) {
      throw bad_request(where + ".function.arguments: must be a text of JSON");
    }
    arguments = given->is_string() ? given->get<std::string>() : dump(*given);
    if (arguments.empty()) arguments = "{}";
    if (!Json::accept(arguments)) {
      throw bad_request(where + ".function.arguments: must be a text of JSON");
    }
  }
  Json out = {{"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
  if (const Json* id = Fields(call).find("id")) out["id"] = *id;
  call = std::move(out);
}

void read_calls(Json& message, const std::string& where) {
  const Json* calls = Fields(message).find("tool_calls");
  if (calls == nullptr || (calls->is_array() && calls->empty())) {
    message.erase("tool_calls");
    return;
  }
  if (!calls->is_array()) throw bad_request(where + ".tool_calls: must be a list");
  if (message["role"] != "assistant") {
    throw bad_request(where + ".tool_calls: only an assistant calls tools");
  }
  if (calls->size() > tool_calls_max) {
    throw bad_request(fmt::format("{}.tool_calls: more than {}", where, tool_calls_max));
  }
  for (std::size_t i = 0; i < message["tool_calls"].size(); ++i) {
    read_call(message["tool_calls"][i], fmt::format("{}.tool_calls[{}]", where, i));
  }
}

Json read_message(Json message, const std::string& where) {
  if (!message.is_object()) throw bad_request(where + ": must be an object");
  const Json* role = Fields(message).find("role");
  if (role == nullptr || !role->is_string()) throw bad_request(where + ".role: must be a text");
  const auto name = role->get<std::string>();
  if (std::find(roles.begin(), roles.end(), name) == roles.end()) {
    throw bad_request(fmt::format("{}.role: '{}' is not a role", where, name));
  }
  for (const char* text : {"name", "tool_call_id", "reasoning_content"}) {
    check_text(message, text, where);
    if (!Fields(message).has(text)) message.erase(text);
  }
  read_content(message, where);
  read_calls(message, where);
  // OpenAI's newer name for the same part; templates know the older one.
  if (name == "developer") message["role"] = "system";
  return message;
}

Json read_tool(const Json& given, const std::string& where) {
  if (!given.is_object()) throw bad_request(where + ": must be an object");
  Json tool = given;
  check_text(tool, "type", where);
  if (Fields(tool).string("type", "") != "function") {
    throw bad_request(where + ".type: only function is supported");
  }
  const Json* function = Fields(tool).find("function");
  if (function == nullptr || !function->is_object()) {
    throw bad_request(where + ".function: must be an object");
  }
  const Json* name = Fields(*function).find("name");
  if (name == nullptr || !name->is_string() || name->get<std::string>().empty() ||
      name->get<std::string>().size() > tool_name_bytes_max) {
    throw bad_request(fmt::format("{}.function.name: must be a text of 1 to {} bytes", where,
                                  tool_name_bytes_max));
  }
  check_text(*function, "description", where + ".function");
  Json& out = tool["function"];
  if (!Fields(out).has("description")) out["description"] = "";
  const Json* parameters = Fields(out).find("parameters");
  if (parameters != nullptr && !parameters->is_object()) {
    throw bad_request(where + ".function.parameters: must be an object");
  }
  if (parameters == nullptr || parameters->empty()) {
    out["parameters"] = {{"type", "object"}, {"properties", Json::object()}};
  }
  return tool;
}

std::string tool_name(const Json& tool) { return tool["function"]["name"].get<std::string>(); }

void read_choice(const Json& choice, Tools& tools) {
  if (choice.is_string()) {
    tools.choice = choice.get<std::string>();
    if (tools.choice != "auto" && tools.choice != "none" && tools.choice != "required") {
      throw bad_request("tool_choice: must be auto, none, required or a function");
    }
    return;
  }
  if (!choice.is_object()) throw bad_request("tool_choice: must be a text or an object");
  const Json* function = Fields(choice).find("function");
  if (Fields(choice).string("type", "function") != "function" || function == nullptr ||
      !function->is_object()) {
    throw bad_request("tool_choice: must name a function");
  }
  const std::string name = Fields(*function).string("name", "");
  const auto named = std::find_if(tools.list.begin(), tools.list.end(),
                                  [&](const Json& tool) { return tool_name(tool) == name; });
  if (named == tools.list.end()) {
    throw bad_request(fmt::format("tool_choice: '{}' is not one of the tools", name));
  }
  const Json only = *named;
  tools.list = Json::array({only});
  tools.choice = "required";
}

}  // namespace

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
    out.push_back(read_message((*messages)[i], fmt::format("messages[{}]", i)));
  }
  return out;
}

Tools read_tools(const Fields& fields, bool parallel_by_default) {
  Tools out;
  if (const Json* tools = fields.find("tools")) {
    if (!tools->is_array()) throw bad_request("tools: must be a list");
    if (tools->size() > tools_max) {
      throw bad_request("tools: more than " + std::to_string(tools_max));
    }
    for (std::size_t i = 0; i < tools->size(); ++i) {
      out.list.push_back(read_tool((*tools)[i], fmt::format("tools[{}]", i)));
    }
  }
  if (const Json* choice = fields.find("tool_choice")) read_choice(*choice, out);
  if (out.list.empty() && out.choice == "required") {
    throw bad_request("tool_choice: required needs tools");
  }
  out.are_parallel = fields.boolean("parallel_tool_calls", parallel_by_default);
  return out;
}

}  // namespace fermata::api
