// Does llama.cpp's chat layer (Jinja templates, derived tool-call parser) understand the template
// in the model file? Renders a conversation with a tool and parses answers; the exit code is 1 when
// a result is not the expected one.
#include "chat.h"
#include "llama_handles.h"

#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

namespace tiny_model {
namespace {

constexpr const char* parameters_json =
    R"({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})";

constexpr const char* arguments_json = R"({"city": "Oslo"})";

constexpr const char* tool_call = R"(<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call>)";

constexpr const char* prompt_start =
    "<|im_start|>system\nBe kind and exact.\n\nYou can call these tools:\n<tools>\n";

constexpr const char* prompt_end = R"(
</tools>
To call a tool, answer with
<tool_call>
{"name": <tool name>, "arguments": <arguments object>}
</tool_call><|im_end|>
<|im_start|>user
What is the weather in Oslo?<|im_end|>
<|im_start|>assistant
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call><|im_end|>
<|im_start|>tool
<tool_response>
{"temperature": 3}
</tool_response><|im_end|>
<|im_start|>assistant
)";

common_chat_msg message(const std::string& role, const std::string& content) {
  common_chat_msg result;
  result.role = role;
  result.content = content;
  return result;
}

common_chat_templates_inputs conversation_with_tool() {
  common_chat_msg call = message("assistant", "");
  call.tool_calls.push_back({"get_weather", arguments_json, "1"});
  common_chat_msg result = message("tool", R"({"temperature": 3})");
  result.tool_call_id = "1";
  common_chat_templates_inputs inputs;
  inputs.messages = {message("system", "Be kind and exact."),
                     message("user", "What is the weather in Oslo?"), call, result};
  inputs.tools.push_back({"get_weather", "Get the weather in a city.", parameters_json});
  inputs.add_generation_prompt = true;
  inputs.use_jinja = true;
  return inputs;
}

// Prints the name of the check and whether it holds; returns the number of failures.
int expect(bool holds, const std::string& what, const std::string& got) {
  printf("%s: %s\n", holds ? "ok" : "FAILED", what.c_str());
  if (!holds) printf("got:\n%s\n", got.c_str());
  return holds ? 0 : 1;
}

int run(const std::string& model_path) {
  silence_progress();
  const Model model = load_model(model_path, true);
  const auto templates = common_chat_templates_init(model.get(), "");
  const auto rendered = common_chat_templates_apply(templates.get(), conversation_with_tool());
  int failures =
      expect(rendered.prompt.starts_with(prompt_start) && rendered.prompt.ends_with(prompt_end),
             "a conversation with a tool is rendered", rendered.prompt);

  common_chat_parser_params parser(rendered);
  if (!rendered.parser.empty()) parser.parser.load(rendered.parser);
  const common_chat_msg call = common_chat_parse(tool_call, false, parser);
  const bool is_call = call.content.empty() && call.tool_calls.size() == 1 &&
                       call.tool_calls[0].name == "get_weather" &&
                       call.tool_calls[0].arguments == arguments_json;
  failures += expect(is_call, "a tool call is parsed",
                     call.tool_calls.empty() ? call.content : call.tool_calls[0].arguments);
  const common_chat_msg plain = common_chat_parse("Hello there.", false, parser);
  failures += expect(plain.content == "Hello there." && plain.tool_calls.empty(),
                     "a plain answer is left alone", plain.content);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tiny_model

int main(int argc, char** argv) {
  std::string model_path;
  CLI::App app("Checks that llama.cpp's chat layer understands the model's template.");
  app.add_option("model", model_path, "GGUF file")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    return tiny_model::run(model_path);
  } catch (const std::exception& error) {
    fprintf(stderr, "chatcheck: %s\n", error.what());
    return 2;
  }
}
