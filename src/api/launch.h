// From checked values to a running request: the steps that all generation routes share.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"
#include "api/generation.h"
#include "core/request.h"

#include <memory>
#include <string>

namespace fermata::api {

// Fields that every generation route reads alike: lengths, stop words, caching, seat, sampling.
// The prompt is the caller's. Throws ApiError.
Request read_request(const Fields& fields, const Context& context);

// How long replies may become: -1 until the window is full. Throws ApiError.
Tokens read_max_tokens(const Fields& fields, const Context& context);

// More would be a limit that nobody named: choices of one prompt, and of all prompts of a request.
inline constexpr std::size_t choices_max = 16;
inline constexpr std::size_t replies_max = 128;  // As PromptsField::most.

// "n", or llama-server's "n_cmpl": how many choices. Throws ApiError.
std::size_t read_choices(const Fields& fields, const Context& context);

GenerationOptions read_generation_options(const Fields& fields, const Context& context);

// stream_options.include_usage
bool wants_usage(const Fields& fields);

// The value with which a field that is not supported yet changes nothing.
enum class Neutral : std::uint8_t {
  off,         // false
  zero,        // 0
  one,         // 1
  empty_list,  // []
  empty_text,  // ""
};
struct Unsupported {
  std::string_view name;
  Neutral neutral;
};

// Answers fields that would change the reply and are not supported yet, rather than ignore them,
// and those of a wrong type. Throws ApiError.
void refuse_unsupported(const Fields& fields, std::initializer_list<Unsupported> unsupported);

// Makes the samplers and submits as many choices of each prompt, each choice with the next seed;
// the exchange of the running request, or throws ApiError: too many prompts, an empty one, one
// larger than the window, a bad grammar, a full queue, a server that stops. The request's own
// prompt is not read.
std::unique_ptr<Exchange> launch(const Context& context, Request request,
                                 std::vector<std::vector<TokenId>> prompts, std::size_t choices,
                                 std::unique_ptr<ReplyFormat> format,
                                 const GenerationOptions& options);
// The same with the request's one prompt.
std::unique_ptr<Exchange> launch(const Context& context, Request request, std::size_t choices,
                                 std::unique_ptr<ReplyFormat> format,
                                 const GenerationOptions& options);

}  // namespace fermata::api
