// throughput, ttft: eight streams at once, and a long prompt alone; against a peer, or against a
// bare loop of the library.
#include "bench/client.h"
#include "bench/models.h"
#include "bench/rivals.h"
#include "bench/workloads.h"
#include "engine/llama/bare_loop.h"

#include <algorithm>
#include <numeric>

namespace fermata::bench {
namespace {

constexpr int streams = 8;
constexpr int stream_tokens = 128;
constexpr int short_prompt = 32;  // Of plain_request.
constexpr int long_prompt = 1000;

std::vector<int> prompt_of(int length) {
  std::vector<int> out(static_cast<std::size_t>(length));
  std::iota(out.begin(), out.end(), 0);
  for (int& token : out) token = 300 + token * 7 % 900;
  return out;
}

Result<engine::llama::BareLoopFigures, std::string> bare(const std::string& model, int prompt,
                                                         int sequences, int tokens, int threads) {
  std::vector<TokenId> ids;
  for (const int token : prompt_of(prompt)) ids.push_back(TokenId{token});
  engine::EngineOptions options;
  options.threads = threads;
  SamplingParams greedy;
  greedy.temperature = 0.0F;
  greedy.ignore_eos = true;
  return engine::llama::run_bare_loop(model, ids, Tokens(tokens), options, greedy, sequences);
}

// Tokens per second from the first request to the last token, prompts included.
Result<double, std::string> stream_speed(int port) {
  std::vector<Json> bodies;
  for (int s = 0; s < streams; ++s) bodies.push_back(plain_request(s, stream_tokens));
  const auto done = stream_completions(port, bodies);
  if (!done) return Err(done.error());
  std::size_t tokens = 0;
  Micros begin = done->front().sent, end = begin;
  for (const StreamFigures& stream : *done) {
    if (stream.events.empty()) return Err(std::string("a stream without a token"));
    tokens += stream.events.size();
    begin = std::min(begin, stream.sent);
    end = std::max(end, stream.events.back());
  }
  return static_cast<double>(tokens) * 1e6 / static_cast<double>((end - begin).value);
}

Result<double, std::string> bare_speed(const std::string& model, int threads) {
  const auto figures = bare(model, short_prompt, streams, stream_tokens, threads);
  if (!figures) return Err(figures.error());
  const Micros took = figures->prompt_time + figures->decode_time;
  return static_cast<double>(figures->tokens.size()) * 1e6 / static_cast<double>(took.value);
}

// Milliseconds from the request to its first token.
Result<double, std::string> first_token_ms(int port) {
  const auto stream = stream_completion(port, Json{{"prompt", prompt_of(long_prompt)},
                                                   {"n_predict", 2},
                                                   {"return_tokens", true},
                                                   {"temperature", 0},
                                                   {"ignore_eos", true},
                                                   {"cache_prompt", false}});
  if (!stream) return Err(stream.error());
  if (stream->events.empty()) return Err(std::string("no token came"));
  return static_cast<double>((stream->events.front() - stream->sent).value) / 1000.0;
}

Result<double, std::string> bare_prompt_ms(const std::string& model, int threads) {
  const auto figures = bare(model, long_prompt, 1, 1, threads);
  if (!figures) return Err(figures.error());
  return static_cast<double>(figures->prompt_time.value) / 1000.0;
}

struct Comparison {
  const char* name;
  const char* unit;
  std::vector<std::string> args;
  Result<double, std::string> (*of_server)(int port);
  Result<double, std::string> (*of_loop)(const std::string& model, int threads);
};

Result<Json, std::string> compare(const Comparison& what, const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  std::vector<std::string> args = {"-m", *model, "-t", std::to_string(options.threads),
                                   "--no-mmap"};
  args.insert(args.end(), what.args.begin(), what.args.end());
  const auto rivals = start_rivals(args);
  if (!rivals) return Err(rivals.error());
  const bool has_peer = rivals->peer != nullptr;
  const std::string other = has_peer ? "peer" : "bare loop";
  Pairs pairs;
  for (int pair = 0; pair <= options.pairs; ++pair) {
    const auto ours = what.of_server(rivals->ours->port());
    if (!ours) return Err(ours.error());
    const auto theirs =
        has_peer ? what.of_server(rivals->peer->port()) : what.of_loop(*model, options.threads);
    if (!theirs) return Err(theirs.error());
    progress(std::string(what.name) + " pair " + std::to_string(pair) + ": " +
             std::to_string(*ours) + " " + what.unit + ", " + other + " " +
             std::to_string(*theirs) + (pair == 0 ? " (warm-up, not counted)" : ""));
    if (pair == 0) continue;
    pairs.ours.push_back(*ours);
    pairs.theirs.push_back(*theirs);
  }
  return Json{{"workload", what.name},
              {"ratio", pairs.ratio()},
              {"ratio_of", std::string(what.unit) + " of the server over those of the " + other},
              {what.unit, median(pairs.ours)},
              {has_peer ? "peer" : "bare", median(pairs.theirs)},
              {"threads", options.threads},
              {"pairs", options.pairs}};
}

}  // namespace

Result<Json, std::string> run_throughput(const BenchOptions& options) {
  return compare(
      {"throughput", "tokens_per_s", {"-c", "4096", "-np", "8"}, stream_speed, bare_speed},
      options);
}

Result<Json, std::string> run_ttft(const BenchOptions& options) {
  return compare(
      {"ttft", "first_token_ms", {"-c", "4096", "-np", "4"}, first_token_ms, bare_prompt_ms},
      options);
}

}  // namespace fermata::bench
