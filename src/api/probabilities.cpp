#include "api/probabilities.h"

#include "api/sampling_fields.h"
#include "core/utf8.h"

#include <algorithm>
#include <utility>

namespace fermata::api {
namespace {

constexpr std::int64_t top_logprobs_max = 20;

ProbabilityOptions options_of(const SamplingParams& sampling) {
  return {.wanted = sampling.n_probs > 0,
          .top = sampling.n_probs,
          .post_sampling = sampling.post_sampling_probs};
}

}  // namespace

ProbabilityOptions read_completion_probabilities(const Fields& fields, SamplingParams& sampling) {
  const Json* logprobs = fields.find("logprobs");
  std::int64_t count = 0;
  if (logprobs != nullptr && logprobs->is_boolean()) {
    count = logprobs->get<bool>() ? 1 : 0;
  } else {
    count = fields.integer("logprobs", 0, 0, n_probs_max);
  }
  if (sampling.n_probs == 0) sampling.n_probs = static_cast<std::int32_t>(count);
  return options_of(sampling);
}

ProbabilityOptions read_chat_probabilities(const Fields& fields, SamplingParams& sampling) {
  const bool logprobs = fields.boolean("logprobs", false);
  const std::int64_t fallback = logprobs ? top_logprobs_max : 0;
  const std::int64_t top = fields.integer("top_logprobs", fallback, 0, top_logprobs_max);
  if (!logprobs) {
    if (top > 0) throw bad_request("top_logprobs requires logprobs to be set to true");
    return options_of(sampling);
  }
  // The token's own is reported beside at least one alternative.
  sampling.n_probs = static_cast<std::int32_t>(std::max<std::int64_t>(top, 1));
  ProbabilityOptions out = options_of(sampling);
  out.top = static_cast<std::int32_t>(top);
  return out;
}

void Probabilities::add(const TokenEvent& event) {
  if (!options_.wanted) return;
  held_.push_back({generated_, {event.token, event.logprob}, event.top});
  generated_ += piece(event.token).size();
  released_ += event.text.size();
  release(false);
}

void Probabilities::end(const FinalEvent& final) {
  released_ += final.text.size();
  release(!final.is_cut);
}

std::string Probabilities::take() {
  if (ready_.empty()) return {};
  return '[' + std::exchange(ready_, std::string()) + ']';
}

std::string_view Probabilities::piece(TokenId token) const {
  return options_.special ? vocabulary_.piece_with_special(token) : vocabulary_.piece(token);
}

void Probabilities::release(bool all) {
  while (!held_.empty()) {
    const Held& first = held_.front();
    // A token without text is given in its place.
    const bool textless = piece(first.token.token).empty();
    const bool shown = first.begin < released_ || (textless && first.begin == released_);
    if (!all && !shown) return;
    append(first);
    held_.pop_front();
  }
}

void Probabilities::append(const Held& held) {
  if (!ready_.empty()) ready_ += ',';
  append_token(held.token);
  ready_ += options_.post_sampling ? ",\"top_probs\":[" : ",\"top_logprobs\":[";
  const auto count = std::min(held.top.size(), static_cast<std::size_t>(options_.top));
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) ready_ += ',';
    append_token(held.top[i]);
    ready_ += '}';
  }
  ready_ += "]}";
}

// Without the closing brace.
void Probabilities::append_token(const TokenProbability& token) {
  const std::string_view text = piece(token.token);
  ready_ += "{\"id\":" + std::to_string(raw(token.token)) + ",\"token\":";
  // Part of a character shows what of it is whole.
  append_quoted(ready_, replace_invalid_utf8(text.substr(0, whole_characters(text))));
  ready_ += ",\"bytes\":[";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > 0) ready_ += ',';
    ready_ += std::to_string(static_cast<unsigned char>(text[i]));
  }
  ready_ += options_.post_sampling ? "],\"prob\":" : "],\"logprob\":";
  ready_ += Json(token.value).dump();
}

}  // namespace fermata::api
