// Token probabilities of a reply, in llama-server's words: which were asked for, and their text.
#pragma once

#include "api/fields.h"
#include "core/events.h"
#include "core/sampling_params.h"
#include "engine/vocabulary.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::api {

struct ProbabilityOptions {
  bool wanted = false;
  std::int32_t top = 0;        // Alternatives to show for each token.
  bool post_sampling = false;  // `prob` and `top_probs`, not `logprob` and `top_logprobs`.
  bool special = false;        // Control tokens are part of the text.
};

// Of completions: n_probs, else OpenAI's logprobs, a count. Sets what the sampler is to report.
ProbabilityOptions read_completion_probabilities(const Fields& fields, SamplingParams& sampling);
// Of chats: logprobs, a boolean, and top_logprobs; else n_probs.
ProbabilityOptions read_chat_probabilities(const Fields& fields, SamplingParams& sampling);

// The probabilities of one reply. Each token has one entry, given when the first byte of its text
// is; tokens whose text a stop word cut off have none.
class Probabilities {
 public:
  // The vocabulary outlives it.
  Probabilities(const engine::Vocabulary& vocabulary, const ProbabilityOptions& options)
      : vocabulary_(vocabulary), options_(options) {}

  void add(const TokenEvent& event);
  void end(const FinalEvent& final);
  // The entries to be given since the last call, as a JSON array; empty when there are none.
  std::string take();

 private:
  struct Held {
    std::size_t begin = 0;  // Bytes of the reply before its text.
    TokenProbability token;
    std::vector<TokenProbability> top;
  };
  std::string_view piece(TokenId token) const;
  void release(bool all);
  void append(const Held& held);
  void append_token(const TokenProbability& token);

  const engine::Vocabulary& vocabulary_;
  ProbabilityOptions options_;
  std::size_t generated_ = 0;  // Bytes of all tokens.
  std::size_t released_ = 0;   // Bytes that stop words let pass.
  std::deque<Held> held_;      // tidy: allow queue: what a stop word holds back, at most its bytes
  std::string ready_;
};

}  // namespace fermata::api
