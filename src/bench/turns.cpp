#include "bench/turns.h"

#include "bench/client.h"

#include <utility>

namespace fermata::bench {

std::vector<int> prompt_of(int length, int conversation) {
  std::vector<int> out;
  for (int i = 0; i < length; ++i) out.push_back(300 + (i * 7 + conversation) % 900);
  return out;
}

Json turn(const std::vector<int>& prompt, int tokens) {
  return {{"prompt", prompt}, {"n_predict", tokens}, {"return_tokens", true},
          {"temperature", 0}, {"ignore_eos", true},  {"cache_prompt", true}};
}

Result<Turn, std::string> take_turn(int port, const std::vector<int>& prompt, int tokens) {
  auto stream = stream_completion(port, turn(prompt, tokens));
  if (!stream) return Err(stream.error());
  if (stream->events.empty()) return Err(std::string("no token came"));
  if (stream->tokens.size() != static_cast<std::size_t>(tokens)) {
    return Err(std::string("the reply lacks tokens"));
  }
  const Json timings = stream->last.value("timings", Json::object());
  Turn out;
  out.first_token_ms = static_cast<double>((stream->events.front() - stream->sent).value) / 1000.0;
  out.computed = timings.value("prompt_n", 0.0);
  out.computing_ms = timings.value("prompt_ms", 0.0);
  out.tokens = std::move(stream->tokens);
  return out;
}

}  // namespace fermata::bench
