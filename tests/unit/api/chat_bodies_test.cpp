// Bodies of other APIs as the chats that they mean, and the checks of messages and tools.
#include "api/anthropic_request.h"
#include "api/chat_messages.h"
#include "api/error.h"
#include "api/responses_request.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

std::string fault_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const ApiError& error) {
    return error.message;
  }
  return "";
}

TEST(Messages, EmptyContentOfAnAssistantBecomesAText) {
  const Json body = Json::parse(R"({"messages": [{"role": "user", "content": "x"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
     "function": {"name": "f", "arguments": {"a": 1}}}]},
    {"role": "tool", "tool_call_id": "1", "content": "y"}]})");
  const Json messages = read_messages(Fields(body));
  EXPECT_EQ(messages[1]["content"], "");
  EXPECT_EQ(messages[1]["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
  EXPECT_EQ(messages[2]["tool_call_id"], "1");
}

TEST(Tools, ANamedToolIsTheOnlyOne) {
  Json body = Json::parse(R"({"tools": [
    {"type": "function", "function": {"name": "a"}},
    {"type": "function", "function": {"name": "b", "description": null, "parameters": {}}}]})");
  EXPECT_EQ(read_tools(Fields(body), true).list.size(), 2U);
  EXPECT_TRUE(read_tools(Fields(body), true).are_parallel);
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "b"}}}};
  const Tools tools = read_tools(Fields(body), false);
  ASSERT_EQ(tools.list.size(), 1U);
  EXPECT_EQ(tools.choice, "required");
  EXPECT_EQ(tools.list[0]["function"]["parameters"]["type"], "object");
  EXPECT_TRUE(tools.may_be_called());
  body["tool_choice"] = "none";
  EXPECT_FALSE(read_tools(Fields(body), false).may_be_called());
}

TEST(ChatOfMessages, BlocksBecomeMessagesInTheirOrder) {
  const Json chat = chat_of_messages(Json::parse(R"({"system": [{"type": "text", "text": "s"}],
    "messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""},
        {"type": "text", "text": "b"},
        {"type": "tool_use", "id": "1", "name": "f", "input": {"x": 2}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "r"},
        {"type": "text", "text": "c"}]}],
    "stop_sequences": ["z"], "stop": "ignored", "n": 4, "min_p": 0.5})"));
  const Json& messages = chat["messages"];
  ASSERT_EQ(messages.size(), 5U);
  EXPECT_EQ(messages[0], Json::parse(R"({"role": "system", "content": "s"})"));
  EXPECT_EQ(messages[2]["reasoning_content"], "t");
  EXPECT_EQ(messages[2]["content"], "b");
  EXPECT_EQ(messages[2]["tool_calls"][0]["function"]["arguments"], R"({"x":2})");
  EXPECT_EQ(messages[3], Json::parse(R"({"role": "tool", "tool_call_id": "1", "content": "r"})"));
  EXPECT_EQ(messages[4], Json::parse(R"({"role": "user", "content": "c"})"));
  EXPECT_EQ(chat["max_tokens"], 4096);
  EXPECT_EQ(chat["stop"], Json::array({"z"}));
  EXPECT_EQ(chat["min_p"], 0.5);
  EXPECT_FALSE(chat.contains("n") || chat.contains("system"));
}

TEST(ChatOfMessages, ChoicesOfTools) {
  const auto choice = [](const char* text) {
    Json body = Json::parse(R"({"messages": [{"role": "user", "content": "a"}],
      "tools": [{"name": "f", "input_schema": {"type": "object"}}]})");
    body["tool_choice"] = Json::parse(text);
    return chat_of_messages(body);
  };
  EXPECT_EQ(choice(R"({"type": "any"})")["tool_choice"], "required");
  EXPECT_EQ(choice(R"({"type": "none"})")["tool_choice"], "none");
  EXPECT_EQ(choice(R"({"type": "tool", "name": "f"})")["tool_choice"]["function"]["name"], "f");
  const Json one = choice(R"({"type": "auto", "disable_parallel_tool_use": true})");
  EXPECT_EQ(one["parallel_tool_calls"], false);
  EXPECT_EQ(one["tools"][0]["function"]["parameters"]["type"], "object");
  EXPECT_TRUE(fault_of([&] { choice(R"({"type": "x"})"); }).starts_with("tool_choice:"));
}

TEST(ChatOfResponse, ItemsOfOneTurnBecomeOneMessage) {
  const Json chat = chat_of_response(Json::parse(R"({"instructions": "i", "max_output_tokens": 7,
    "input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]},
      {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
      {"type": "function_call", "call_id": "2", "name": "g", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "1", "output": "r"}],
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "string"}}},
    "reasoning": {"effort": "low"}, "tools": [{"type": "function", "name": "f"}]})"));
  const Json& messages = chat["messages"];
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[1]["content"], "a");
  EXPECT_EQ(messages[2]["reasoning_content"], "t");
  EXPECT_EQ(messages[2]["content"], "b");
  EXPECT_EQ(messages[2]["tool_calls"].size(), 2U);
  EXPECT_EQ(messages[3]["tool_call_id"], "1");
  EXPECT_EQ(chat["max_completion_tokens"], 7);
  EXPECT_EQ(chat["reasoning_effort"], "low");
  EXPECT_EQ(chat["response_format"]["json_schema"]["schema"]["type"], "string");
  EXPECT_EQ(chat["tools"][0]["function"]["name"], "f");
}

TEST(ChatOfResponse, WhatNeedsKeptRepliesIsRefused) {
  for (const char* field : {"previous_response_id", "conversation"}) {
    const Json body = {{"input", "x"}, {field, "resp_1"}};
    EXPECT_TRUE(fault_of([&] { chat_of_response(body); }).starts_with(std::string(field) + ":"));
  }
}

}  // namespace
}  // namespace fermata::api
