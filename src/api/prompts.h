// What a client writes as a prompt, as tokens.
#pragma once

#include "api/fields.h"
#include "base/types.h"
#include "engine/vocabulary.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace fermata::api {

struct TokenizeOptions {
  bool add_special = true;    // What the model puts around a text goes around the whole.
  bool parse_special = true;  // Text of control tokens becomes those tokens.
};

// A text, or a list of token ids and texts that follow each other. Throws ApiError, about `name`.
std::vector<TokenId> read_tokens(const Json& value, const engine::Vocabulary& vocabulary,
                                 const TokenizeOptions& options, std::string_view name);

struct PromptsField {
  std::string_view name = "prompt";
  std::size_t most = 128;  // Prompts.
};

// One prompt or a list of them; a list that holds a token id is one prompt. A prompt is what
// read_tokens takes, or {"prompt_string": text}. An empty one becomes the model's
// beginning-of-text token where it has one. Never empty. Throws ApiError, about the field.
std::vector<std::vector<TokenId>> read_prompts(const Json& value,
                                               const engine::Vocabulary& vocabulary,
                                               const PromptsField& field = {});

}  // namespace fermata::api
