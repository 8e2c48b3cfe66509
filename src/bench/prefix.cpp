// prefix: what the second turn of a conversation still has to compute, and how long it takes.
#include "bench/models.h"
#include "bench/rivals.h"
#include "bench/turns.h"
#include "bench/workloads.h"

namespace fermata::bench {
namespace {

constexpr int first_tokens = 1000, reply_tokens = 64, added_tokens = 32;

struct Turns {
  std::vector<double> first_ms, second_ms, computed;
};

// A conversation of its own in each round, so that nothing is left from the one before.
Result<void, std::string> converse(int port, int round, Turns& turns) {
  std::vector<int> prompt = prompt_of(first_tokens, round);
  const auto first = take_turn(port, prompt, reply_tokens);
  if (!first) return Err(first.error());
  prompt.insert(prompt.end(), first->tokens.begin(), first->tokens.end());
  for (int i = 0; i < added_tokens; ++i) prompt.push_back(300 + i);
  const auto second = take_turn(port, prompt, 2);
  if (!second) return Err(second.error());
  turns.first_ms.push_back(first->first_token_ms);
  turns.second_ms.push_back(second->first_token_ms);
  turns.computed.push_back(second->computed);
  return {};
}

}  // namespace

Result<Json, std::string> run_prefix(const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  const auto rivals = start_rivals(
      {"-m", *model, "-t", std::to_string(options.threads), "--no-mmap", "-c", "8192", "-np", "4"});
  if (!rivals) return Err(rivals.error());
  Turns ours, theirs;
  for (int round = 0; round < options.pairs; ++round) {
    if (auto done = converse(rivals->ours->port(), round, ours); !done) return Err(done.error());
    progress("prefix round " + std::to_string(round + 1) + ": second turn computes " +
             std::to_string(ours.computed.back()) + " tokens, its first after " +
             std::to_string(ours.second_ms.back()) + " ms, of the first turn after " +
             std::to_string(ours.first_ms.back()) + " ms");
    if (rivals->peer == nullptr) continue;
    if (auto done = converse(rivals->peer->port(), round, theirs); !done) return Err(done.error());
  }
  Json out = {{"workload", "prefix"},
              {"ratio", Pairs{ours.second_ms, ours.first_ms}.ratio()},
              {"ratio_of", "time to the first token of the second turn over that of the first"},
              {"second_turn_ms", median(ours.second_ms)},
              {"first_turn_ms", median(ours.first_ms)},
              {"computed_tokens", median(ours.computed)},
              {"added_tokens", added_tokens}};
  if (rivals->peer != nullptr) {
    out["over_peer"] = Pairs{ours.second_ms, theirs.second_ms}.ratio();
    out["peer_second_turn_ms"] = median(theirs.second_ms);
    out["peer_computed_tokens"] = median(theirs.computed);
  }
  out["threads"] = options.threads;
  out["pairs"] = options.pairs;
  return out;
}

}  // namespace fermata::bench
