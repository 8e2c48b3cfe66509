// overcommit: eight streams in a pool for four, against other ways to serve them.
#include "base/clock.h"
#include "bench/child_server.h"
#include "bench/client.h"
#include "bench/models.h"
#include "bench/workloads.h"

#include <algorithm>
#include <cstdlib>

namespace fermata::bench {
namespace {

using Args = std::vector<std::string>;
using Streams = std::vector<StreamFigures>;

struct Outcome {
  double tokens_per_s = 0.0;
  int complete = 0;
};

Outcome outcome_of(const Streams& streams, Micros took, int tokens) {
  Outcome out;
  std::size_t all = 0;
  for (const StreamFigures& stream : streams) {
    all += stream.events.size();
    out.complete += stream.events.size() >= static_cast<std::size_t>(tokens) ? 1 : 0;
  }
  out.tokens_per_s = static_cast<double>(all) * 1e6 / static_cast<double>(took.value);
  return out;
}

// One way to serve the load, with the figures of every pair.
struct Contender {
  const char* name;
  Args args;
  std::vector<double> tokens_per_s = {};
  int complete = 0;
  const char* program = nullptr;  // Null: this one.
};

constexpr int streams = 8;
constexpr int tokens = 160;  // Each stream takes 192 cells: four of them fit in the pool.

Result<void, std::string> run_contender(Contender& contender, const std::string& model,
                                        int threads) {
  Args args = {"-m", model, "-t", std::to_string(threads)};
  args.insert(args.end(), contender.args.begin(), contender.args.end());
  const auto server = contender.program == nullptr
                          ? ChildServer::start(args)
                          : ChildServer::start_peer(contender.program, args);
  if (!server) return Err(server.error());
  if (const auto ready = stream_completion((*server)->port(), plain_request(99, 4)); !ready) {
    return Err(ready.error());
  }
  std::vector<Json> bodies;
  for (int s = 0; s < streams; ++s) bodies.push_back(plain_request(s, tokens));
  const SteadyClock clock;
  const Micros began = clock.now();
  Streams done;
  for (auto& stream : stream_each((*server)->port(), bodies)) {
    if (stream) done.push_back(std::move(*stream));
    // Another server may end some of them; ours may not.
    else if (contender.program == nullptr)
      return Err(stream.error());
  }
  const Outcome outcome = outcome_of(done, clock.now() - began, tokens);
  contender.tokens_per_s.push_back(outcome.tokens_per_s);
  contender.complete += outcome.complete;
  progress("overcommit " + std::string(contender.name) + ": " +
           std::to_string(outcome.tokens_per_s) + " tok/s, " + std::to_string(outcome.complete) +
           " of " + std::to_string(streams) + " complete");
  return {};
}

double ratio_of(const Contender& ours, const Contender& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.tokens_per_s.size(); ++i) {
    ratios.push_back(ours.tokens_per_s[i] / other.tokens_per_s[i]);
  }
  return median(ratios);
}

Json figures_of(const Contender& ours, const Contender& capped, const Contender& careful,
                const Contender& unlimited) {
  return {{"workload", "overcommit"},
          {"ratio", ratio_of(ours, capped)},
          {"ratio_of", "tokens/s of 8 streams in a pool for 4, over 4 at a time in a large one"},
          {"over_admission_only", ratio_of(ours, careful)},
          {"over_unlimited", ratio_of(ours, unlimited)},
          {"tokens_per_s", median(ours.tokens_per_s)},
          {"capped_tokens_per_s", median(capped.tokens_per_s)},
          {"admission_only_tokens_per_s", median(careful.tokens_per_s)},
          {"unlimited_tokens_per_s", median(unlimited.tokens_per_s)}};
}

}  // namespace

Result<Json, std::string> run_overcommit(const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  Contender ours{"parking", {"-c", "768", "-np", "8"}};
  Contender capped{"capped at what fits", {"-c", "2048", "-np", "4"}};
  Contender careful{"admission-only",
                    {"-c", "768", "-np", "8", "--preempt-policy", "admission-only"}};
  Contender unlimited{"unlimited", {"-c", "2048", "-np", "8"}};
  Contender peer{"LLAMA_SERVER", {"-c", "768", "-np", "8", "--kv-unified"}};
  peer.program = std::getenv("LLAMA_SERVER");
  std::vector<Contender*> contenders = {&ours, &capped, &careful, &unlimited};
  if (peer.program != nullptr) contenders.push_back(&peer);
  const int rounds = std::min(options.pairs, 3);
  for (int round = 0; round < rounds; ++round) {
    for (Contender* contender : contenders) {
      if (auto done = run_contender(*contender, *model, options.threads); !done) {
        return Err(done.error());
      }
    }
  }
  Json figures = figures_of(ours, capped, careful, unlimited);
  figures["complete"] = ours.complete;
  figures["of"] = streams * rounds;
  if (peer.program != nullptr) {
    figures["peer_complete"] = peer.complete;
    if (peer.complete > 0) figures["over_peer"] = ratio_of(ours, peer);
  }
  figures["threads"] = options.threads;
  figures["pairs"] = rounds;
  return figures;
}

}  // namespace fermata::bench
