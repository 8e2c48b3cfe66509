// The chat template of a model: messages to a prompt, and a reply's text back to a message.
#pragma once

#include "base/result.h"
#include "engine/vocabulary.h"

#include <map>
#include <string>
#include <string_view>

#include <chat.h>

namespace fermata::engine::llama {

// Grammar of a JSON schema, guarded against schemas that nest too deep or grow too large.
Result<std::string, SamplerFault> grammar_of_schema(const std::string& schema_json);

// All methods are const and thread-safe.
class ChatTemplate {
 public:
  // `override_text` empty: the template in the model, and if there is none the library's ChatML.
  // Error: one line, why the text is no template.
  static Result<ChatTemplate, std::string> make(const llama_model* model,
                                                const std::string& override_text);

  Result<ChatPrompt, ChatFault> apply(const llama_vocab* vocab, const ChatInput& input) const;
  std::string_view source() const { return source_; }
  std::map<std::string, bool> caps() const;

 private:
  ChatTemplate(common_chat_templates_ptr templates, std::string source)
      : templates_(std::move(templates)), source_(std::move(source)) {}

  common_chat_templates_ptr templates_;
  std::string source_;
};

}  // namespace fermata::engine::llama
