// decode, decode-tiny: one stream of the server against a bare loop of the library, in turns.
#include "bench/child_server.h"
#include "bench/client.h"
#include "bench/models.h"
#include "bench/workloads.h"
#include "engine/llama/bare_loop.h"

#include <numeric>

namespace fermata::bench {
namespace {

constexpr int prompt_tokens = 32;

struct Plan {
  std::string model;
  int tokens;  // Of one repetition.
};

Json request_of(int tokens) {
  std::vector<int> prompt(prompt_tokens);
  std::iota(prompt.begin(), prompt.end(), 300);
  return {{"prompt", prompt},   {"n_predict", tokens},   {"temperature", 0},
          {"ignore_eos", true}, {"cache_prompt", false}, {"return_tokens", true}};
}

// Tokens per second between the first event and the last.
Result<double, std::string> server_speed(int port, int tokens) {
  const auto figures = stream_completion(port, request_of(tokens));
  if (!figures) return Err(figures.error());
  if (figures->events.size() < 2) return Err(std::string("too few events to measure"));
  const Micros took = figures->events.back() - figures->events.front();
  return static_cast<double>(figures->events.size() - 1) * 1e6 / static_cast<double>(took.value);
}

Result<double, std::string> bare_speed(const Plan& plan, const BenchOptions& options) {
  std::vector<TokenId> prompt;
  for (int i = 0; i < prompt_tokens; ++i) prompt.push_back(TokenId{300 + i});
  engine::EngineOptions engine;
  engine.threads = options.threads;
  SamplingParams greedy;
  greedy.temperature = 0.0F;
  greedy.ignore_eos = true;
  const auto figures =
      engine::llama::run_bare_loop(plan.model, prompt, Tokens(plan.tokens), engine, greedy);
  if (!figures) return Err(figures.error());
  return figures->decode_tokens_per_second;
}

Result<Json, std::string> compare(const char* name, const Plan& plan, const BenchOptions& options) {
  const auto server = ChildServer::start({"-m", plan.model, "-c", "4096", "-np", "4", "-t",
                                          std::to_string(options.threads), "--no-mmap"});
  if (!server) return Err(server.error());
  std::vector<double> ours, bare, ratios;
  for (int pair = 0; pair <= options.pairs; ++pair) {
    const auto server_tps = server_speed((*server)->port(), plan.tokens);
    if (!server_tps) return Err(server_tps.error());
    const auto bare_tps = bare_speed(plan, options);
    if (!bare_tps) return Err(bare_tps.error());
    progress(std::string(name) + " pair " + std::to_string(pair) + ": server " +
             std::to_string(*server_tps) + " tok/s, bare loop " + std::to_string(*bare_tps) +
             (pair == 0 ? " (warm-up, not counted)" : ""));
    if (pair == 0) continue;
    ours.push_back(*server_tps);
    bare.push_back(*bare_tps);
    ratios.push_back(*server_tps / *bare_tps);
  }
  return Json{{"workload", name},
              {"ratio", median(ratios)},
              {"ratio_of", "server tokens/s over bare loop tokens/s, one stream"},
              {"server_tokens_per_s", median(ours)},
              {"bare_tokens_per_s", median(bare)},
              {"threads", options.threads},
              {"pairs", options.pairs}};
}

}  // namespace

Result<Json, std::string> run_decode(const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  return compare("decode", {*model, 96}, options);
}

Result<Json, std::string> run_decode_tiny(const BenchOptions& options) {
  const auto model = tiny_model();
  if (!model) return Err(model.error());
  return compare("decode-tiny", {*model, 1500}, options);
}

}  // namespace fermata::bench
