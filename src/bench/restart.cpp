// restart: the second turn of a conversation after the server was stopped and started on the same
// folder of pages, against a server that has to compute it.
#include "bench/child_server.h"
#include "bench/client.h"
#include "bench/models.h"
#include "bench/rivals.h"
#include "bench/scratch.h"
#include "bench/turns.h"
#include "bench/workloads.h"

namespace fermata::bench {
namespace {

constexpr int first_tokens = 2000, reply_tokens = 32, added_tokens = 32;

using Args = std::vector<std::string>;

Result<std::unique_ptr<ChildServer>, std::string> start(const Args& args) {
  auto server = ChildServer::start(args);
  if (!server) return server;
  const auto ready = stream_completion((*server)->port(), plain_request(99, 4));
  if (!ready) return Err(ready.error());
  return server;
}

struct Figures {
  Pairs first_token_ms;  // Of the second turn.
  std::vector<double> computed, computing_ms;
};

Result<void, std::string> run_round(int round, const Args& args, Figures& figures) {
  const auto folder = ScratchFolder::make();
  if (!folder) return Err(folder.error());
  Args with_pages = args;
  with_pages.insert(with_pages.end(), {"--page-dir", (*folder)->path().string()});
  std::vector<int> prompt = prompt_of(first_tokens, round);
  {
    const auto before = start(with_pages);
    if (!before) return Err(before.error());
    const auto first = take_turn((*before)->port(), prompt, reply_tokens);
    if (!first) return Err(first.error());
    prompt.insert(prompt.end(), first->tokens.begin(), first->tokens.end());
    for (int i = 0; i < added_tokens; ++i) prompt.push_back(300 + i);
    (*before)->stop();
  }
  // As after a restart of the machine.
  if (const auto left = (*folder)->push_out(); !left) return Err(left.error());
  const auto restarted = start(with_pages);
  if (!restarted) return Err(restarted.error());
  const auto second = take_turn((*restarted)->port(), prompt, 2);
  if (!second) return Err(second.error());
  (*restarted)->stop();
  const auto fresh = start(args);
  if (!fresh) return Err(fresh.error());
  const auto cold = take_turn((*fresh)->port(), prompt, 2);
  if (!cold) return Err(cold.error());
  figures.first_token_ms.ours.push_back(second->first_token_ms);
  figures.first_token_ms.theirs.push_back(cold->first_token_ms);
  figures.computed.push_back(second->computed);
  figures.computing_ms.push_back(second->computing_ms);
  progress("restart round " + std::to_string(round + 1) + ": the second turn computes " +
           std::to_string(second->computed) + " tokens, its first after " +
           std::to_string(second->first_token_ms) + " ms, cold after " +
           std::to_string(cold->first_token_ms) + " ms");
  return {};
}

}  // namespace

Result<Json, std::string> run_restart(const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  const Args args = {"-m",   *model, "-t", std::to_string(options.threads), "--no-mmap", "-c",
                     "8192", "-np",  "4"};
  Figures figures;
  for (int round = 0; round < options.pairs; ++round) {
    if (auto done = run_round(round, args, figures); !done) return Err(done.error());
  }
  return Json{{"workload", "restart"},
              {"ratio", figures.first_token_ms.ratio()},
              {"ratio_of",
               "time to the first token of a second turn after a restart, over computing it all"},
              {"second_turn_ms", median(figures.first_token_ms.ours)},
              {"of_it_computing_ms", median(figures.computing_ms)},
              {"cold_ms", median(figures.first_token_ms.theirs)},
              {"computed_tokens", median(figures.computed)},
              {"prompt_tokens", first_tokens + reply_tokens + added_tokens},
              {"added_tokens", added_tokens},
              {"threads", options.threads},
              {"pairs", options.pairs}};
}

}  // namespace fermata::bench
