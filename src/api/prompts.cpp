#include "api/prompts.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fermata::api {
namespace {

TokenId read_token(const Json& value, const engine::Vocabulary& vocabulary, std::string_view name) {
  const auto token = value.get<std::int64_t>();
  const bool fits = !value.is_number_unsigned() || value.get<std::uint64_t>() <= 0x7FFFFFFF;
  if (!fits || token < 0 || token >= vocabulary.size()) {
    throw bad_request(std::string(name) + ": token " + value.dump() + " is not in the vocabulary");
  }
  return TokenId{static_cast<std::int32_t>(token)};
}

// llama-server's object for a prompt with media, of which this server knows the text.
const Json& text_of(const Json& prompt, const std::string& name) {
  const Fields fields(prompt, name + '.');
  const Json* media = fields.find("multimodal_data");
  if (media != nullptr && !media->is_array()) {
    throw bad_request(name + ".multimodal_data: must be a list");
  }
  if (media != nullptr && !media->empty()) {
    throw ApiError{.type = ErrorType::not_supported,
                   .message = name + ".multimodal_data: media are not supported yet"};
  }
  const Json* text = fields.find("prompt_string");
  if (text == nullptr || !text->is_string()) {
    throw bad_request(name + ".prompt_string: must be a text");
  }
  return *text;
}

std::vector<TokenId> read_prompt(const Json& prompt, const engine::Vocabulary& vocabulary,
                                 std::string_view name) {
  const Json& value = prompt.is_object() ? text_of(prompt, std::string(name)) : prompt;
  std::vector<TokenId> out = read_tokens(value, vocabulary, {}, name);
  if (out.empty() && vocabulary.special().bos) out.push_back(*vocabulary.special().bos);
  if (out.empty()) throw bad_request(std::string(name) + ": is empty");
  return out;
}

bool is_list_of_prompts(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::none_of(value.begin(), value.end(), [](const Json& p) { return p.is_number(); });
}

}  // namespace

std::vector<TokenId> read_tokens(const Json& value, const engine::Vocabulary& vocabulary,
                                 const TokenizeOptions& options, std::string_view name) {
  if (value.is_string()) {
    return vocabulary.tokenize(value.get<std::string>(), options.add_special,
                               options.parse_special);
  }
  if (!value.is_array()) {
    throw bad_request(std::string(name) + ": must be a text or a list of texts and token ids");
  }
  std::vector<TokenId> out;
  bool first = true;
  for (const Json& part : value) {
    if (part.is_number_integer()) {
      out.push_back(read_token(part, vocabulary, name));
    } else if (part.is_string()) {
      const auto tokens = vocabulary.tokenize(part.get<std::string>(), options.add_special && first,
                                              options.parse_special);
      out.insert(out.end(), tokens.begin(), tokens.end());
    } else {
      throw bad_request(std::string(name) + ": a list must hold texts and token ids");
    }
    first = false;
  }
  return out;
}

std::vector<std::vector<TokenId>> read_prompts(const Json& value,
                                               const engine::Vocabulary& vocabulary,
                                               const PromptsField& field) {
  if (!is_list_of_prompts(value)) return {read_prompt(value, vocabulary, field.name)};
  if (value.size() > field.most) {
    throw bad_request(std::string(field.name) + ": more than " + std::to_string(field.most));
  }
  std::vector<std::vector<TokenId>> out;
  for (const Json& prompt : value) out.push_back(read_prompt(prompt, vocabulary, field.name));
  return out;
}

}  // namespace fermata::api
