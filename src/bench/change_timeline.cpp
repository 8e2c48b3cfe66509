// change-timeline: when each of four streams had its tokens while the geometry changed, for
// tools/plot-timeline.
#include "base/clock.h"
#include "bench/child_server.h"
#include "bench/client.h"
#include "bench/models.h"
#include "bench/workloads.h"

#include <thread>

namespace fermata::bench {
namespace {

constexpr int streams = 4, stream_tokens = 160;
constexpr int cells_before = 2048, cells_after = 4096, slots_after = 2;
constexpr double tokens_before = streams * 40.0;  // Of all streams, when the change is asked for.

struct Change {
  Micros asked{0}, answered{0};
  Result<Json, std::string> receipt = Err(std::string("the change was not asked for"));
};

Change change_under_way(int port, const Clock& clock) {
  Change out;
  for (double tokens = 0; tokens < tokens_before;) {
    const auto now = read_metric(port, "llamacpp:tokens_predicted_total");
    if (!now) {
      out.receipt = Err(now.error());
      return out;
    }
    tokens = *now;
  }
  out.asked = clock.now();
  out.receipt =
      post_json(port, "/reconfigure", {{"n_ctx", cells_after}, {"n_parallel", slots_after}});
  out.answered = clock.now();
  return out;
}

// From the command to the receipt: what happened between, in ms since `began`.
Json phases_of(const Change& change, Micros began) {
  const double asked = static_cast<double>((change.asked - began).value) / 1000.0;
  const double built =
      asked + change.receipt->value("t_queue_ms", 0.0) + change.receipt->value("t_build_ms", 0.0);
  const double end = static_cast<double>((change.answered - began).value) / 1000.0;
  return Json::array({{{"name", "the new context is built"}, {"from_ms", asked}, {"to_ms", built}},
                      {{"name", "cells are copied"}, {"from_ms", built}, {"to_ms", end}}});
}

}  // namespace

Result<Json, std::string> run_change_timeline(const BenchOptions& options) {
  const auto model = bench_model();
  if (!model) return Err(model.error());
  const auto server = ChildServer::start(
      {"-m", *model, "-c", std::to_string(cells_before), "-np", std::to_string(streams), "-t",
       std::to_string(options.threads), "--no-mmap", "--metrics", "--reconfigure-path", "beside"});
  if (!server) return Err(server.error());
  const int port = (*server)->port();
  std::vector<Json> bodies;
  for (int s = 0; s < streams; ++s) bodies.push_back(plain_request(s, stream_tokens));
  const SteadyClock clock;
  const Micros began = clock.now();
  Change change;
  std::thread operator_thread([&] { change = change_under_way(port, clock); });
  const auto done = stream_completions(port, bodies);
  operator_thread.join();
  if (!done) return Err(done.error());
  if (!change.receipt) return Err(change.receipt.error());
  return Json{{"workload", "change-timeline"},
              {"ratio", change.receipt->value("t_pause_ms", 0.0)},
              {"ratio_of", "milliseconds in which no step could run"},
              {"cells", cells_before},
              {"title", "four streams while 4 slots of 2,048 tokens become 2 slots of 4,096"},
              {"phases", phases_of(change, began)},
              {"streams", times_of(*done, began)}};
}

}  // namespace fermata::bench
