// http: what the server around the model costs: processor time of a request and of a token that is
// streamed, memory and threads of streams that are open and silent.
#include "bench/client.h"
#include "bench/models.h"
#include "bench/process.h"
#include "bench/rivals.h"
#include "bench/workloads.h"

#include <algorithm>

#include <poll.h>

namespace fermata::bench {
namespace {

constexpr int health_requests = 5000;
constexpr int streams = 4, stream_tokens = 500;
constexpr int idle_streams = 2000;
constexpr int patience_ms = 10'000, look_ms = 20;

struct HttpFigures {
  double health_us = 0.0;  // Processor time of one.
  double token_us = 0.0;
  double idle_kib = 0.0;  // Resident memory of one.
  int idle = 0;           // Of those that were opened, those that the server took in.
  int threads = 0;        // With these open.
};

Result<double, std::string> health_us(const ChildServer& server) {
  const auto before = look_at(server.pid());
  if (!before) return Err(before.error());
  if (auto done = ask_health(server.port(), health_requests); !done) return Err(done.error());
  const auto after = look_at(server.pid());
  if (!after) return Err(after.error());
  return static_cast<double>(after->all_cpu_ns() - before->all_cpu_ns()) / 1000.0 / health_requests;
}

Result<double, std::string> token_us(const ChildServer& server) {
  std::vector<Json> bodies;
  for (int s = 0; s < streams; ++s) bodies.push_back(plain_request(s, stream_tokens));
  const auto before = look_at(server.pid());
  if (!before) return Err(before.error());
  const auto done = stream_completions(server.port(), bodies);
  if (!done) return Err(done.error());
  const auto after = look_at(server.pid());
  if (!after) return Err(after.error());
  return static_cast<double>(cpu_ns_beside_busiest(*before, *after)) / 1000.0 /
         (streams * stream_tokens);
}

// A stream whose events are large and that nobody reads: it occupies its slot until it is closed.
Json blocking_request() {
  return {{"prompt", std::vector<int>(16, 300)},
          {"n_predict", -1},
          {"ignore_eos", true},
          {"n_probs", 100},
          {"stream", true}};
}

// Waits until so many wait for a slot, or no more come.
Result<int, std::string> wait_for_waiting(int port, int wanted) {
  int most = 0;
  for (int patience = patience_ms; patience > 0; patience -= look_ms) {
    const auto now = read_metric(port, "llamacpp:requests_deferred");
    if (!now) return Err(now.error());
    if (*now > most) patience = patience_ms;
    most = std::max(most, static_cast<int>(*now));
    if (most >= wanted) break;
    (void)poll(nullptr, 0, look_ms);
  }
  return most;
}

Result<void, std::string> measure_idle(const ChildServer& server, HttpFigures& out) {
  const auto before = look_at(server.pid());
  if (!before) return Err(before.error());
  Json silent = plain_request(0, 1);
  silent["stream"] = true;
  OpenStreams open(server.port());
  if (auto done = open.add(blocking_request(), 1); !done) return done;
  if (auto done = open.add(silent, idle_streams); !done) return done;
  const auto waiting = wait_for_waiting(server.port(), idle_streams);
  if (!waiting) return Err(waiting.error());
  if (*waiting == 0) return Err(std::string("no stream waits"));
  const auto after = look_at(server.pid());
  if (!after) return Err(after.error());
  out.idle = *waiting;
  out.idle_kib =
      static_cast<double>(after->resident_bytes - before->resident_bytes) / 1024.0 / *waiting;
  out.threads = static_cast<int>(after->cpu_ns.size());
  return {};
}

Result<HttpFigures, std::string> measure(const ChildServer& busy, const ChildServer& narrow) {
  HttpFigures out;
  const auto health = health_us(busy);
  if (!health) return Err(health.error());
  const auto token = token_us(busy);
  if (!token) return Err(token.error());
  out.health_us = *health;
  out.token_us = *token;
  if (auto done = measure_idle(narrow, out); !done) return Err(done.error());
  return out;
}

Json to_json(const HttpFigures& figures) {
  return {{"health_cpu_us", figures.health_us},
          {"token_cpu_us", figures.token_us},
          {"idle_stream_kib", figures.idle_kib},
          {"idle_streams", figures.idle},
          {"threads", figures.threads}};
}

}  // namespace

// Once: memory that a server has taken stays, and the next round would find it.
Result<Json, std::string> run_http(const BenchOptions&) {
  const auto model = tiny_model();
  if (!model) return Err(model.error());
  allow_many_files();
  const std::string queue = std::to_string(idle_streams + 100);
  // One thread computes, so that the others are the server.
  const auto busy = start_rivals({"-m", *model, "-t", "1", "-c", "4096", "-np", "4"});
  if (!busy) return Err(busy.error());
  const auto narrow = start_rivals({"-m", *model, "-t", "1", "-c", "4096", "-np", "1", "--metrics"},
                                   {"--queue-max", queue, "--connections-max", queue});
  if (!narrow) return Err(narrow.error());
  const auto ours = measure(*busy->ours, *narrow->ours);
  if (!ours) return Err(ours.error());
  Json out = {{"workload", "http"}};
  if (busy->peer != nullptr) {
    const auto theirs = measure(*busy->peer, *narrow->peer);
    if (!theirs) return Err(theirs.error());
    out["ratio"] = ours->token_us / theirs->token_us;
    out["ratio_of"] = "processor time of a streamed token over the peer's";
    out["health_over_peer"] = ours->health_us / theirs->health_us;
    out["idle_stream_over_peer"] = ours->idle_kib / theirs->idle_kib;
    out["peer"] = to_json(*theirs);
  }
  out["ours"] = to_json(*ours);
  return out;
}

}  // namespace fermata::bench
