// Chat templates on a model without weights: messages to a prompt, replies back to messages.
#include "engine/vocabulary.h"
#include "support/llama_models.h"

#include <string>

#include <gtest/gtest.h>

namespace fermata::engine::llama {
namespace {

using fermata::testing::tiny_vocabulary;

constexpr const char* weather_tool = R"([{"type":"function","function":{"name":"get_weather",
  "description":"Weather of a city","parameters":{"type":"object",
  "properties":{"city":{"type":"string"}},"required":["city"]}}}])";

ChatInput hello() {
  ChatInput input;
  input.messages_json =
      R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}])";
  return input;
}

ChatPrompt apply(const ChatInput& input) {
  auto prompt = tiny_vocabulary()->apply_template(input);
  EXPECT_TRUE(prompt.ok()) << prompt.error().message;
  return std::move(prompt).value();
}

TEST(Chat, MessagesBecomeTheModelsPrompt) {
  const ChatPrompt prompt = apply(hello());
  EXPECT_EQ(prompt.prompt,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(prompt.constraints.generation_prompt, "<|im_start|>assistant\n");
  EXPECT_TRUE(prompt.constraints.grammar.empty());
  EXPECT_EQ(prompt.constraints.grammar_origin, GrammarOrigin::none);
  ASSERT_NE(prompt.parser, nullptr);
}

TEST(Chat, WithoutAGenerationPromptTheTurnIsNotOpened) {
  ChatInput input = hello();
  input.add_generation_prompt = false;
  EXPECT_FALSE(apply(input).prompt.ends_with("assistant\n"));
}

TEST(Chat, AFinalAssistantMessageIsContinued) {
  ChatInput input = hello();
  input.messages_json =
      R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"Good mor"}])";
  input.continue_final_message = true;
  input.add_generation_prompt = false;
  const ChatPrompt prompt = apply(input);
  EXPECT_TRUE(prompt.prompt.ends_with("Good mor"));
  EXPECT_EQ(prompt.parser->parse("nin", true).content, "nin");
  EXPECT_EQ(prompt.parser->parse("ning.", false).content, "ning.") << "only what is new";
  input.add_generation_prompt = true;
  EXPECT_FALSE(tiny_vocabulary()->apply_template(input).ok()) << "not both";
}

TEST(Chat, AReplyIsAMessage) {
  const ChatPrompt prompt = apply(hello());
  const auto whole = prompt.parser->parse("Good morning.", false);
  EXPECT_EQ(whole.content, "Good morning.");
  EXPECT_TRUE(whole.tool_calls.empty());
  EXPECT_EQ(prompt.parser->parse("Good mor", true).content, "Good mor");
}

TEST(Chat, AToolCallIsReadOutOfTheReply) {
  ChatInput input = hello();
  input.tools_json = weather_tool;
  const ChatPrompt prompt = apply(input);
  EXPECT_NE(prompt.prompt.find("get_weather"), std::string::npos);
  EXPECT_EQ(prompt.constraints.grammar_origin, GrammarOrigin::tool_calls);
  EXPECT_TRUE(prompt.constraints.grammar_lazy);
  EXPECT_FALSE(prompt.constraints.grammar_triggers.empty());
  const std::string reply =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>";
  const auto message = prompt.parser->parse(reply, false);
  ASSERT_EQ(message.tool_calls.size(), 1U);
  EXPECT_EQ(message.tool_calls[0].name, "get_weather");
  EXPECT_NE(message.tool_calls[0].arguments.find("Oslo"), std::string::npos);
  // However far the reply has come, there is an answer.
  for (std::size_t i = 0; i <= reply.size(); ++i) {
    const auto partial = prompt.parser->parse(reply.substr(0, i), true);
    EXPECT_LE(partial.tool_calls.size(), 1U);
  }
}

// Streams tell what each partial parse has more than the one before: nothing may be taken back.
TEST(Chat, PartialMessagesOnlyGrow) {
  ChatInput input = hello();
  input.tools_json = weather_tool;
  const ChatPrompt prompt = apply(input);
  EXPECT_FALSE(prompt.parser->is_plain());
  const std::string reply =
      "Let me <see>.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
      "{\"city\": \"Os\\\"l\\u00e9o\", \"days\": [1, {\"a\": 2.5}], \"x\": null}}\n</tool_call>";
  ReplyParser::Message before;
  for (std::size_t i = 0; i <= reply.size(); ++i) {
    const auto now = prompt.parser->parse(reply.substr(0, i), i < reply.size());
    EXPECT_TRUE(now.content.starts_with(before.content)) << i;
    ASSERT_GE(now.tool_calls.size(), before.tool_calls.size()) << i;
    if (!before.tool_calls.empty()) {
      EXPECT_EQ(now.tool_calls[0].name, before.tool_calls[0].name);
      EXPECT_TRUE(now.tool_calls[0].arguments.starts_with(before.tool_calls[0].arguments)) << i;
    }
    before = now;
  }
  EXPECT_EQ(before.content, "Let me <see>.\n");
  ASSERT_EQ(before.tool_calls.size(), 1U);
}

TEST(Chat, APlainReplyNeedsNoParsing) {
  EXPECT_TRUE(apply(hello()).parser->is_plain());
  ChatInput input = hello();
  input.json_schema = R"({"type":"object"})";
  EXPECT_FALSE(apply(input).parser->is_plain()) << "the library takes ```json away";
  input = hello();
  input.tools_json = weather_tool;
  input.tool_choice = "none";
  const std::string call =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(apply(input).parser->parse(call, false).tool_calls.empty());
  input.tool_choice = "auto";
  input.parse_reply = false;
  EXPECT_TRUE(apply(input).parser->is_plain());
}

TEST(Chat, TheGrammarOfToolsMakesASampler) {
  for (const std::string choice : {"auto", "required"}) {
    ChatInput input = hello();
    input.tools_json = weather_tool;
    input.tool_choice = choice;
    const ChatPrompt prompt = apply(input);
    EXPECT_EQ(prompt.constraints.grammar_lazy, choice == "auto");
    auto sampler = tiny_vocabulary()->make_sampler(prompt.constraints, {});
    EXPECT_TRUE(sampler.ok()) << sampler.error().message;
  }
}

TEST(Chat, ASchemaBecomesAGrammar) {
  ChatInput input = hello();
  input.json_schema = R"({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]})";
  const ChatPrompt prompt = apply(input);
  EXPECT_NE(prompt.constraints.grammar.find("root ::="), std::string::npos);
  EXPECT_EQ(prompt.constraints.grammar_origin, GrammarOrigin::json_schema);
  EXPECT_TRUE(tiny_vocabulary()->make_sampler(prompt.constraints, {}).ok());
}

TEST(Chat, TheClientsGrammarStaysTheClients) {
  ChatInput input = hello();
  input.grammar = "root ::= \"yes\" | \"no\"";
  const ChatPrompt prompt = apply(input);
  EXPECT_EQ(prompt.constraints.grammar, input.grammar);
  EXPECT_EQ(prompt.constraints.grammar_origin, GrammarOrigin::client);
}

TEST(Chat, WhatCannotBeParsedComesBackAsContent) {
  ChatInput input = hello();
  input.tools_json = weather_tool;
  const ChatPrompt prompt = apply(input);
  for (const std::string& reply :
       {std::string("<tool_call>\n{\"name\": 7"), std::string("<tool_call></tool_call>"),
        std::string("\xff\xfe\x80 broken"), std::string(10000, '{')}) {
    for (const bool partial : {false, true}) {
      const auto message = prompt.parser->parse(reply, partial);
      EXPECT_TRUE(!message.content.empty() || !message.tool_calls.empty() || partial);
    }
  }
}

TEST(Chat, BadMessagesAreTheClientsFaultInOneLine) {
  const auto vocabulary = tiny_vocabulary();
  for (const char* messages :
       {"", "{", "[", "7", "[7]", R"([{"content":"no role"}])", R"([{"role":"user"}])",
        R"([{"role":"user","content":7}])", R"([{"role":"user","content":[{"type":"image_url"}]}])",
        R"([{"role":"assistant","tool_calls":[{}]}])"}) {
    ChatInput input;
    input.messages_json = messages;
    const auto prompt = vocabulary->apply_template(input);
    ASSERT_FALSE(prompt.ok()) << messages;
    EXPECT_FALSE(prompt.error().message.empty());
    EXPECT_EQ(prompt.error().message.find('\n'), std::string::npos);
  }
  ChatInput input = hello();
  input.tools_json = "[{}]";
  EXPECT_FALSE(vocabulary->apply_template(input).ok());
  input = hello();
  input.tool_choice = "sometimes";
  EXPECT_FALSE(vocabulary->apply_template(input).ok());
  input = hello();
  input.reasoning_format = "unheard";
  EXPECT_FALSE(vocabulary->apply_template(input).ok());
  input = hello();
  input.template_kwargs["x"] = "{not json";
  EXPECT_FALSE(vocabulary->apply_template(input).ok());
}

TEST(Chat, TheTemplateShowsItsSourceAndCaps) {
  const auto vocabulary = tiny_vocabulary();
  EXPECT_NE(vocabulary->chat_template().find("<|im_start|>"), std::string_view::npos);
  const auto caps = vocabulary->chat_template_caps();
  ASSERT_TRUE(caps.contains("supports_tools"));
  EXPECT_TRUE(caps.at("supports_tools"));
}

TEST(Chat, AnotherTemplateReplacesTheModels) {
  tiny_vocabulary();
  const auto other =
      load_vocabulary(fermata::testing::tiny_model_path(),
                      "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
                      "{% if add_generation_prompt %}[assistant] {% endif %}");
  ASSERT_TRUE(other.ok()) << other.error().message;
  const auto prompt = (*other)->apply_template(hello());
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(prompt->prompt, "[system] Be brief.\n[user] Hi\n[assistant] ");
  const auto broken =
      load_vocabulary(fermata::testing::tiny_model_path(), "{% for m in messages %}");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().message.find('\n'), std::string::npos);
}

TEST(Chat, TemplateArgumentsReachTheTemplate) {
  tiny_vocabulary();
  const auto made = load_vocabulary(fermata::testing::tiny_model_path(),
                                    "{% for m in messages %}{{ m.content }}{% endfor %}{{ mood }}"
                                    "{% if add_generation_prompt %}>{% endif %}");
  ASSERT_TRUE(made.ok()) << made.error().message;
  ChatInput input = hello();
  input.template_kwargs["mood"] = "\"calm\"";
  const auto prompt = (*made)->apply_template(input);
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_NE(prompt->prompt.find("calm"), std::string::npos);
}

}  // namespace
}  // namespace fermata::engine::llama
