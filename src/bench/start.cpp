// start: from the start of the process to the first token of the default model.
#include "base/clock.h"
#include "bench/child_server.h"
#include "bench/client.h"
#include "bench/models.h"
#include "bench/workloads.h"

namespace fermata::bench {
namespace {

constexpr double aim_ms = 500.0;

}  // namespace

Result<Json, std::string> run_start(const BenchOptions& options) {
  const auto model = tiny_model();
  if (!model) return Err(model.error());
  const SteadyClock clock;
  std::vector<double> times;
  for (int i = 0; i < options.pairs; ++i) {
    const Micros began = clock.now();
    const auto server = ChildServer::start({"-m", *model, "-t", std::to_string(options.threads)});
    if (!server) return Err(server.error());
    const auto figures = stream_completion(
        (*server)->port(),
        Json{{"prompt", "Tell me a story."}, {"n_predict", 2}, {"ignore_eos", true}});
    if (!figures) return Err(figures.error());
    if (figures->events.empty()) return Err(std::string("no token came"));
    times.push_back(static_cast<double>((figures->events.front() - began).value) / 1000.0);
    progress("start " + std::to_string(i + 1) + ": first token after " +
             std::to_string(times.back()) + " ms");
  }
  return Json{{"workload", "start"},
              {"ratio", median(times) / aim_ms},
              {"ratio_of", "process start to first token over 500 ms"},
              {"first_token_ms", median(times)},
              {"threads", options.threads},
              {"pairs", options.pairs}};
}

}  // namespace fermata::bench
