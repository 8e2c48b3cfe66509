// tick: what the scheduler itself costs, with as many sequences decoding as one pool can seat.
#include "base/clock.h"
#include "bench/workloads.h"
#include "engine/fake/fake_engine.h"
#include "engine/fake/fake_vocabulary.h"
#include "scheduler/scheduler.h"

#include <memory>

namespace fermata::bench {
namespace {

constexpr double aim_us = 100.0;
constexpr std::uint64_t shared_tokens = 16, prompt_tokens = 32;  // One beginning for all.
constexpr int settling_ticks = 50, ticks = 400;

std::shared_ptr<scheduler::EventChannel> submit(scheduler::Scheduler& scheduler,
                                                const engine::Vocabulary& vocabulary,
                                                std::uint64_t number) {
  auto request = std::make_shared<Request>();
  request->id = RequestId(number);
  for (std::uint64_t i = 0; i < prompt_tokens; ++i) {
    const std::uint64_t token = i < shared_tokens ? i : number + 7 * number * i;
    request->prompt.push_back(TokenId{static_cast<std::int32_t>(token % 256)});
  }
  std::vector<scheduler::Submission> submissions(1);
  scheduler::Submission& submission = submissions.front();
  auto sampler = vocabulary.make_sampler(request->sampling, request->prompt);
  submission.sampler = std::move(sampler).value();
  submission.request = std::move(request);
  submission.channel = scheduler.open_channel();
  auto channel = submission.channel;
  if (scheduler.submit(submissions) != scheduler::SubmitOutcome::accepted) return nullptr;
  return channel;
}

// Microseconds of each tick without the engine's step, once all sequences decode.
Result<std::vector<double>, std::string> measure() {
  const auto vocabulary = engine::fake::make_vocabulary();
  Geometry geometry;
  geometry.n_parallel = n_parallel_max;
  geometry.n_ctx = Tokens(std::int64_t{n_parallel_max} * 1024);
  engine::fake::FakeEngine engine({}, geometry, {});
  const SteadyClock clock;
  scheduler::SchedulerOptions options;
  options.events_max = 1024;
  scheduler::Scheduler scheduler(engine, *vocabulary, clock, options);
  std::vector<std::shared_ptr<scheduler::EventChannel>> clients;
  // One more than there are seats: it waits, which is work for the policy in every tick.
  for (std::uint64_t i = 0; i <= n_parallel_max; ++i) {
    clients.push_back(submit(scheduler, *vocabulary, i + 1));
    if (clients.back() == nullptr) return Err(std::string("a request was refused"));
  }
  const scheduler::SchedulerStats& stats = scheduler.stats();
  std::vector<double> out;
  scheduler::EventChannel::Taken taken;
  while (out.size() < ticks + settling_ticks) {
    const std::uint64_t seats_before = stats.busy_seats_in_steps.value();
    const std::uint64_t before = stats.tick_us.value(), predicted = stats.predicted_tokens.value();
    if (!scheduler.tick()) return Err(std::string("the scheduler stands still"));
    for (const auto& client : clients) client->take(taken);
    const bool all_decode = stats.predicted_tokens.value() - predicted == n_parallel_max &&
                            stats.busy_seats_in_steps.value() - seats_before == n_parallel_max;
    if (all_decode) out.push_back(static_cast<double>(stats.tick_us.value() - before));
  }
  out.erase(out.begin(), out.begin() + settling_ticks);
  return out;
}

}  // namespace

Result<Json, std::string> run_tick(const BenchOptions& options) {
  std::vector<double> medians, p99s;
  for (int pair = 0; pair < options.pairs; ++pair) {
    const auto figures = measure();
    if (!figures) return Err(figures.error());
    medians.push_back(median(*figures));
    p99s.push_back(percentile(*figures, 99.0));
    progress("tick round " + std::to_string(pair + 1) + ": median " +
             std::to_string(medians.back()) + " us, p99 " + std::to_string(p99s.back()) + " us");
  }
  return Json{{"workload", "tick"},
              {"ratio", median(medians) / aim_us},
              {"ratio_of", "scheduler time per tick with 255 decoding sequences over 100 us"},
              {"tick_us", median(medians)},
              {"tick_p99_us", median(p99s)},
              {"sequences", n_parallel_max},
              {"pairs", options.pairs}};
}

}  // namespace fermata::bench
