// reconfigure: the gap that a running stream sees when the geometry changes beside it and in place,
// against freeing and building a context and copying all conversations with everybody stopped.
#include "base/clock.h"
#include "bench/child_server.h"
#include "bench/client.h"
#include "bench/models.h"
#include "bench/workloads.h"

#include <algorithm>
#include <numeric>
#include <thread>

namespace fermata::bench {
namespace {

constexpr int resident_tokens = 2000;
constexpr int stream_tokens = 240;

struct Figures {
  double step_ms = 0;               // Median gap of the stream.
  double gap_ms = 0;                // Its largest while the change is under way.
  double usual_gap_ms = 0;          // Its largest afterwards.
  double speed_while_changing = 0;  // Over the speed afterwards.
  double pause_ms = 0;              // As the server says.
  double parts_ms = 0;              // page_out + free + init + page_in, as the server says.
  double build_ms = 0;
  double computed = 0;  // Tokens that the next turn of a moved conversation computes.
};

std::vector<int> prompt_of(int first) {
  std::vector<int> prompt(resident_tokens);
  for (int i = 0; i < resident_tokens; ++i) prompt[static_cast<std::size_t>(i)] = first + i % 900;
  return prompt;
}

Result<Json, std::string> complete(int port, const std::vector<int>& prompt, int tokens) {
  return post_json(
      port, "/completion",
      {{"prompt", prompt}, {"n_predict", tokens}, {"temperature", 0}, {"ignore_eos", true}});
}

Result<Figures, std::string> measure(int port, int n_parallel) {
  for (const int first : {300, 1300}) {
    const auto done = complete(port, prompt_of(first), 1);
    if (!done) return Err(done.error());
  }
  const SteadyClock clock;
  Micros asked{0}, changed{0};
  Result<Json, std::string> receipt = Err(std::string("the change was not asked for"));
  std::thread operator_thread([&] {
    // So that the stream is under way.
    if (!complete(port, {400, 401, 402}, 10)) return;
    asked = clock.now();
    receipt = post_json(port, "/reconfigure", {{"n_parallel", n_parallel}});
    changed = clock.now();
  });
  const auto stream = stream_completion(port, {{"prompt", {300, 7, 8}},
                                               {"n_predict", stream_tokens},
                                               {"return_tokens", true},
                                               {"temperature", 0},
                                               {"ignore_eos", true},
                                               {"cache_prompt", false}});
  operator_thread.join();
  if (!stream) return Err(stream.error());
  if (!receipt) return Err(receipt.error());
  Figures out;
  std::vector<double> before, during, after;
  for (const Gap& gap : gaps_of(*stream)) {
    auto& gaps = gap.to <= asked ? before : gap.from <= changed ? during : after;
    gaps.push_back(gap.ms);
  }
  if (before.empty() || during.empty() || after.empty()) {
    return Err(std::string("the stream ended before the change"));
  }
  out.step_ms = median(after);
  out.gap_ms = *std::ranges::max_element(during);
  out.usual_gap_ms = *std::ranges::max_element(after);
  out.speed_while_changing = out.step_ms / median(during);
  out.pause_ms = receipt->value("t_pause_ms", 0.0);
  out.build_ms = receipt->value("t_build_ms", 0.0);
  out.parts_ms = receipt->value("t_page_out_ms", 0.0) + receipt->value("t_free_ms", 0.0) +
                 receipt->value("t_init_ms", 0.0) + receipt->value("t_page_in_ms", 0.0);
  std::vector<int> again = prompt_of(300);
  again.insert(again.end(), {5, 6, 7});
  const auto next = complete(port, again, 1);
  if (!next) return Err(next.error());
  out.computed = next->at("timings").value("prompt_n", 0.0);
  return out;
}

}  // namespace

Result<Json, std::string> run_reconfigure(const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  const auto start = [&](const char* path) {
    return ChildServer::start({"-m", *model, "-c", "8192", "-np", "4", "-t",
                               std::to_string(options.threads), "--no-mmap", "--reconfigure-path",
                               path});
  };
  const auto beside = start("beside");
  if (!beside) return Err(beside.error());
  const auto in_place = start("in_place");
  if (!in_place) return Err(in_place.error());
  std::vector<double> extra_steps, over_stopped, over_parts, computed, build, pause, usual, speed;
  for (int pair = 0; pair < options.pairs; ++pair) {
    const int n_parallel = 5 + pair % 2;
    const auto a = measure((*beside)->port(), n_parallel);
    if (!a) return Err(a.error());
    const auto b = measure((*in_place)->port(), n_parallel);
    if (!b) return Err(b.error());
    progress("reconfigure pair " + std::to_string(pair + 1) + ": step " +
             std::to_string(a->step_ms) + " ms; largest gap beside " + std::to_string(a->gap_ms) +
             ", in place " + std::to_string(b->gap_ms) + "; built in " +
             std::to_string(a->build_ms) + ", pause " + std::to_string(a->pause_ms) + " and " +
             std::to_string(b->pause_ms));
    extra_steps.push_back((a->gap_ms - a->step_ms) / a->step_ms);
    usual.push_back((a->usual_gap_ms - a->step_ms) / a->step_ms);
    speed.push_back(a->speed_while_changing);
    over_stopped.push_back((a->gap_ms - a->step_ms) / b->parts_ms);
    over_parts.push_back(b->pause_ms / b->parts_ms);
    computed.push_back(std::max(a->computed, b->computed));
    build.push_back(a->build_ms);
    pause.push_back(a->pause_ms);
  }
  return Json{{"workload", "reconfigure"},
              {"ratio", median(extra_steps)},
              {"ratio_of", "extra gap of a running stream, beside, over a decode step"},
              {"extra_gap_over_stopped", median(over_stopped)},
              {"extra_gap_afterwards", median(usual)},
              {"speed_while_changing", median(speed)},
              {"in_place_pause_over_parts", median(over_parts)},
              {"next_turn_computes", median(computed)},
              {"build_ms", median(build)},
              {"pause_beside_ms", median(pause)},
              {"threads", options.threads},
              {"pairs", options.pairs}};
}

}  // namespace fermata::bench
