// agents: sixteen requests at once whose prompts begin with one long system prompt, against
// computing each prompt by itself.
#include "bench/client.h"
#include "bench/models.h"
#include "bench/rivals.h"
#include "bench/turns.h"
#include "bench/workloads.h"

#include <algorithm>

namespace fermata::bench {
namespace {

constexpr int agents = 16;
constexpr int system_tokens = 2000, own_tokens = 20, reply_tokens = 32;
constexpr double each_by_itself = static_cast<double>(agents * (system_tokens + own_tokens));

struct Load {
  double computed = 0.0;  // Tokens of prompts, together.
  double wall_s = 0.0;    // From the first request to the last token.
};

// With a system prompt that no other round has.
std::vector<Json> bodies_of(int round) {
  std::vector<Json> out;
  for (int agent = 0; agent < agents; ++agent) {
    std::vector<int> prompt = prompt_of(system_tokens, round);
    const std::vector<int> own = prompt_of(own_tokens, 450 + round + agent * 11);
    prompt.insert(prompt.end(), own.begin(), own.end());
    out.push_back(turn(prompt, reply_tokens));
  }
  return out;
}

Result<Load, std::string> run_load(int port, int round) {
  const auto streams = stream_completions(port, bodies_of(round));
  if (!streams) return Err(streams.error());
  Load out;
  Micros begin = streams->front().sent, end = begin;
  for (const StreamFigures& stream : *streams) {
    if (stream.tokens.size() != reply_tokens) return Err(std::string("a reply lacks tokens"));
    out.computed += stream.last.value("timings", Json::object()).value("prompt_n", 0.0);
    begin = std::min(begin, stream.sent);
    end = std::max(end, stream.events.back());
  }
  out.wall_s = static_cast<double>((end - begin).value) / 1e6;
  return out;
}

}  // namespace

Result<Json, std::string> run_agents(const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  const auto rivals = start_rivals({"-m", *model, "-t", std::to_string(options.threads),
                                    "--no-mmap", "-c", "40960", "-np", std::to_string(agents)});
  if (!rivals) return Err(rivals.error());
  const bool has_peer = rivals->peer != nullptr;
  Pairs computed, wall;
  const int rounds = std::min(options.pairs, 3);
  for (int round = 0; round < rounds; ++round) {
    const auto ours = run_load(rivals->ours->port(), round);
    if (!ours) return Err(ours.error());
    progress("agents round " + std::to_string(round + 1) + ": " + std::to_string(ours->computed) +
             " tokens of prompts computed, " + std::to_string(ours->wall_s) + " s");
    computed.ours.push_back(ours->computed);
    wall.ours.push_back(ours->wall_s);
    if (!has_peer) {
      computed.theirs.push_back(each_by_itself);
      continue;
    }
    const auto theirs = run_load(rivals->peer->port(), round);
    if (!theirs) return Err(theirs.error());
    computed.theirs.push_back(theirs->computed);
    wall.theirs.push_back(theirs->wall_s);
  }
  Json out = {{"workload", "agents"},
              {"ratio", computed.ratio()},
              {"ratio_of", has_peer ? "tokens of 16 prompts computed, over those of the peer"
                                    : "tokens of 16 prompts computed, over all of them"},
              {"computed_tokens", median(computed.ours)},
              {has_peer ? "peer_computed_tokens" : "all_tokens", median(computed.theirs)},
              {"wall_s", median(wall.ours)}};
  if (has_peer) {
    out["peer_wall_s"] = median(wall.theirs);
    out["wall_over_peer"] = wall.ratio();
  }
  out["threads"] = options.threads;
  out["pairs"] = rounds;
  return out;
}

}  // namespace fermata::bench
