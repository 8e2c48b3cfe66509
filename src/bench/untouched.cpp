// untouched, idle, timeline: what those notice who are not parked, what it costs that parking is
// possible, and a picture of a pool that is too small.
#include "base/clock.h"
#include "bench/child_server.h"
#include "bench/client.h"
#include "bench/models.h"
#include "bench/workloads.h"

#include <algorithm>

namespace fermata::bench {
namespace {

using Args = std::vector<std::string>;

Result<std::unique_ptr<ChildServer>, std::string> start(const BenchOptions& options, Args more) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  Args args = {"-m", *model, "-t", std::to_string(options.threads)};
  args.insert(args.end(), more.begin(), more.end());
  auto server = ChildServer::start(args);
  if (!server) return server;
  const auto ready = stream_completion((*server)->port(), plain_request(99, 4));
  if (!ready) return Err(ready.error());
  return server;
}

// One stream of high priority, which is never parked, beside others that move in and out.
constexpr int untouched_tokens = 300;
constexpr int others = 6;
constexpr int others_tokens = 150;

struct Gaps {
  double p99_ms = 0.0;
  std::size_t parks = 0;  // Of the others.
};

Result<Gaps, std::string> run_beside(const BenchOptions& options, const Args& args) {
  const auto server = start(options, args);
  if (!server) return Err(server.error());
  std::vector<Json> bodies{plain_request(0, untouched_tokens)};
  bodies[0]["priority"] = 1;
  for (int i = 1; i <= others; ++i) bodies.push_back(plain_request(i, others_tokens));
  const auto done = stream_completions((*server)->port(), bodies);
  if (!done) return Err(done.error());
  const StreamFigures& stream = done->front();
  if (!stream.parked.empty()) return Err(std::string("the stream that is measured was parked"));
  std::vector<double> gaps;
  Gaps out;
  Micros end{0};
  for (std::size_t i = 1; i < done->size(); ++i) {
    out.parks += (*done)[i].parked.size();
    if (!(*done)[i].events.empty()) end = std::max(end, (*done)[i].events.back());
  }
  // While the others decode too, and after everybody's prompt.
  if (stream.events.size() < 8) return Err(std::string("the stream ended too early"));
  for (const Gap& gap : gaps_of(stream)) {
    if (gap.from >= stream.events[7] && gap.to <= end) gaps.push_back(gap.ms);
  }
  if (gaps.size() < 100) return Err(std::string("the others ended too early"));
  out.p99_ms = percentile(gaps, 99.0);
  return out;
}

}  // namespace

Result<Json, std::string> run_untouched(const BenchOptions& options) {
  std::vector<double> ratios, beside, alone;
  std::size_t parks = 0;
  const int rounds = std::min(options.pairs, 3);
  for (int round = 0; round < rounds; ++round) {
    // Cells for about three of them, of which five come in; and five in a pool that is never full.
    const auto moving = run_beside(options, {"-c", "512", "-np", "7"});
    if (!moving) return Err(moving.error());
    if (moving->parks == 0) return Err(std::string("nobody was parked"));
    const auto still = run_beside(options, {"-c", "2048", "-np", "5"});
    if (!still) return Err(still.error());
    progress("untouched: p99 gap " + std::to_string(moving->p99_ms) + " ms beside " +
             std::to_string(moving->parks) + " parks, undisturbed " +
             std::to_string(still->p99_ms) + " ms");
    ratios.push_back(moving->p99_ms / still->p99_ms);
    beside.push_back(moving->p99_ms);
    alone.push_back(still->p99_ms);
    parks += moving->parks;
  }
  return Json{{"workload", "untouched"},
              {"ratio", median(ratios)},
              {"ratio_of", "p99 gap of a stream beside others that are parked, over undisturbed"},
              {"p99_gap_ms", median(beside)},
              {"undisturbed_p99_gap_ms", median(alone)},
              {"parks", parks},
              {"threads", options.threads},
              {"pairs", rounds}};
}

Result<Json, std::string> run_idle(const BenchOptions& options) {
  const Args room = {"-c", "4096", "-np", "4"};
  Args off = room;
  off.push_back("--no-preempt");
  const auto with = start(options, room), without = start(options, off);
  if (!with) return Err(with.error());
  if (!without) return Err(without.error());
  const auto speed = [](const ChildServer& server) -> Result<double, std::string> {
    const SteadyClock clock;
    const Micros began = clock.now();
    const auto done = stream_completions(
        server.port(), {plain_request(0, 96), plain_request(1, 96), plain_request(2, 96)});
    if (!done) return Err(done.error());
    return 3.0 * 96.0 * 1e6 / static_cast<double>((clock.now() - began).value);
  };
  std::vector<double> ratios;
  for (int pair = 0; pair < options.pairs; ++pair) {
    const auto possible = speed(**with), plain = speed(**without);
    if (!possible) return Err(possible.error());
    if (!plain) return Err(plain.error());
    progress("idle pair " + std::to_string(pair + 1) + ": " + std::to_string(*possible) +
             " tok/s, without parking " + std::to_string(*plain));
    ratios.push_back(*possible / *plain);
  }
  return Json{{"workload", "idle"},
              {"ratio", median(ratios)},
              {"ratio_of", "tokens/s of three streams with parking possible, over --no-preempt"},
              {"threads", options.threads},
              {"pairs", options.pairs}};
}

Result<Json, std::string> run_timeline(const BenchOptions& options) {
  const auto server = start(options, {"-c", "768", "-np", "8"});
  if (!server) return Err(server.error());
  std::vector<Json> bodies;
  for (int s = 0; s < 8; ++s) bodies.push_back(plain_request(s, 160));
  const SteadyClock clock;
  const Micros began = clock.now();
  const auto done = stream_completions((*server)->port(), bodies);
  if (!done) return Err(done.error());
  int complete = 0;
  for (const StreamFigures& stream : *done) complete += stream.events.size() >= 160 ? 1 : 0;
  return Json{{"workload", "timeline"},
              {"ratio", static_cast<double>(complete) / 8.0},
              {"ratio_of", "streams that got all their tokens"},
              {"cells", 768},
              {"streams", times_of(*done, began)}};
}

}  // namespace fermata::bench
