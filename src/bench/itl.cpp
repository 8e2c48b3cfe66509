// itl: how evenly seven streams go on beside a prompt of 4,000 tokens.
#include "base/clock.h"
#include "bench/child_server.h"
#include "bench/client.h"
#include "bench/models.h"
#include "bench/workloads.h"

#include <stop_token>
#include <thread>

namespace fermata::bench {
namespace {

constexpr int streams = 7;
constexpr int stream_tokens = 700;  // At most: they are left when the long prompt is done.
constexpr int long_prompt_tokens = 4000;
constexpr std::size_t settled = 40;  // Tokens of each stream before the long prompt comes.

Json stream_body(int number) {
  return {{"prompt", std::vector<int>(16, 300 + number)},
          {"n_predict", stream_tokens},
          {"return_tokens", true},
          {"temperature", 0},
          {"ignore_eos", true},
          {"cache_prompt", false}};
}

Json long_body() {
  std::vector<int> prompt;
  for (int i = 0; i < long_prompt_tokens; ++i) prompt.push_back(300 + i * 7 % 900);
  return {{"prompt", prompt}, {"n_predict", 1}, {"cache_prompt", false}};
}

struct Gaps {
  std::vector<double> alone_ms, beside_ms;
};

// Gaps between tokens, sorted by whether the long prompt was being computed.
void sort_gaps(const StreamFigures& figures, Micros from, Micros to, Gaps& gaps) {
  for (const Gap& gap : gaps_of(figures)) {
    if (gap.to < from) gaps.alone_ms.push_back(gap.ms);
    if (gap.from >= from && gap.to <= to) gaps.beside_ms.push_back(gap.ms);
  }
}

// Blocks until every stream has settled; false when one ended before.
bool wait_until_settled(int port) {
  const auto probe = stream_completion(port, Json{{"prompt", {300, 301}},
                                                  {"n_predict", static_cast<int>(settled)},
                                                  {"temperature", 0},
                                                  {"ignore_eos", true},
                                                  {"cache_prompt", false}});
  return probe.ok();
}

Result<Gaps, std::string> one_round(int port) {
  std::vector<Result<StreamFigures, std::string>> results(streams, Err(std::string("not run")));
  std::stop_source leave;
  std::vector<std::jthread> threads;
  for (int s = 0; s < streams; ++s) {
    threads.emplace_back([&, s] {
      results[static_cast<std::size_t>(s)] =
          stream_completion(port, stream_body(s), leave.get_token());
    });
  }
  const SteadyClock clock;
  // A short eighth stream of `settled` tokens ends when the others have about as many.
  const bool good = wait_until_settled(port);
  const Micros from = clock.now();
  const auto prompt = stream_completion(port, long_body());
  const Micros to = clock.now();
  leave.request_stop();
  threads.clear();  // Joins.
  if (!good) return Err(std::string("the streams did not settle"));
  if (!prompt) return Err(prompt.error());
  Gaps gaps;
  for (const auto& result : results) {
    if (!result) return Err(result.error());
    sort_gaps(*result, from, to, gaps);
  }
  if (gaps.alone_ms.empty() || gaps.beside_ms.empty()) {
    return Err(std::string("the streams ended before the long prompt was computed"));
  }
  return gaps;
}

}  // namespace

Result<Json, std::string> run_itl(const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  const auto server = ChildServer::start({"-m", *model, "-c", "12288", "-np", "8", "-t",
                                          std::to_string(options.threads), "--no-mmap"});
  if (!server) return Err(server.error());
  std::vector<double> ratios, p99s, steps;
  const int rounds = std::min(options.pairs, 3);
  for (int round = 0; round < rounds; ++round) {
    const auto gaps = one_round((*server)->port());
    if (!gaps) return Err(gaps.error());
    const double step = median(gaps->alone_ms), p99 = percentile(gaps->beside_ms, 99.0);
    progress("itl round " + std::to_string(round + 1) + " of " + std::to_string(rounds) +
             ": undisturbed step " + std::to_string(step) + " ms, p99 gap beside the prompt " +
             std::to_string(p99) + " ms over " + std::to_string(gaps->beside_ms.size()) + " gaps");
    ratios.push_back(p99 / step);
    p99s.push_back(p99);
    steps.push_back(step);
  }
  return Json{
      {"workload", "itl"},
      {"ratio", median(ratios)},
      {"ratio_of", "p99 gap of 7 streams beside a 4,000-token prompt over an undisturbed step"},
      {"p99_gap_ms", median(p99s)},
      {"undisturbed_step_ms", median(steps)},
      {"threads", options.threads},
      {"pairs", rounds}};
}

}  // namespace fermata::bench
