#include "bench/bench.h"

#include "bench/workloads.h"
#include "engine/llama/backend.h"

#include <algorithm>
#include <cstdio>

#include <CLI/CLI.hpp>

namespace fermata::bench {
namespace {

std::string names() {
  std::string out;
  for (const Workload& workload : workloads()) {
    out += std::string("\n  ") + workload.name + ": " + workload.what;
  }
  return out;
}

int run_one(const Workload& workload, const BenchOptions& options) {
  auto figures = workload.run(options);
  if (!figures) {
    std::fprintf(stderr, "error: %s: %s\n", workload.name, figures.error().c_str());
    return 1;
  }
  Json line = *figures;
  line["machine"] = machine();
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  return 0;
}

}  // namespace

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {
      {"decode", "one stream of the 350 M model against a bare loop; good: 0.98 and more",
       run_decode},
      {"decode-tiny", "the same with the default model; good: 0.90 and more", run_decode_tiny},
      {"throughput", "8 streams at once, over a peer or a bare loop; good: 0.95 and more",
       run_throughput},
      {"ttft", "first token after 1,000, over a peer or a bare loop; good: 1.10 and less",
       run_ttft},
      {"prefix", "first token of a second turn, over that of the first turn", run_prefix},
      {"http", "processor time and memory around the model, over a peer; good: 1 and less",
       run_http},
      {"itl", "p99 gap of 7 streams beside a long prompt, in steps; good: 3 and less", run_itl},
      {"overcommit", "8 streams in a pool for 4, over 4 at a time; good: 0.95 and more",
       run_overcommit},
      {"park", "out of the pool and back, over a plain copy; good: 0.80 and more", run_park},
      {"untouched", "p99 gap of a stream beside parks, over undisturbed; good: 1.5 and less",
       run_untouched},
      {"idle", "streams with nothing parked, over --no-preempt; good: 0.99 and more", run_idle},
      {"timeline", "when each of 8 streams had its tokens, for tools/plot-timeline", run_timeline},
      {"tick", "scheduler time per tick with 255 sequences, over 100 us; good: 1 and less",
       run_tick},
      {"reconfigure", "extra gap of a stream when the geometry changes, in steps; good: 1 and less",
       run_reconfigure},
      {"change-timeline", "the same while the geometry changes", run_change_timeline},
      {"lookup", "finding one of 10,000 stored pages, over 50 us; good: 1 and less", run_lookup},
      {"restore", "a conversation from RAM, over a plain copy, and from disk; good: 0.80 and more",
       run_restore},
      {"restart", "second turn after a restart, over computing it all; good: 0.10 and less",
       run_restart},
      {"agents", "tokens computed of 16 prompts that begin alike, over all; good: 0.125 and less",
       run_agents},
      {"decode-pages", "one stream with --page-dir, over without; good: 0.99 and more",
       run_decode_pages},
      {"start", "process start to first token, over 500 ms; good: 1 and less", run_start},
  };
  return all;
}

int run_bench(std::span<const std::string_view> args) {
  CLI::App app("Measures this build on this machine. Workloads:" + names(), "fermata bench");
  std::string name;
  BenchOptions options;
  app.add_option("workload", name, "one of the above")->required();
  app.add_option("-t,--threads", options.threads, "threads that compute")
      ->check(CLI::Range(1, 512));
  app.add_option("--pairs", options.pairs, "repetitions; medians are over these")
      ->check(CLI::Range(1, 100));
  std::vector<std::string> words(args.rbegin(), args.rend());
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto found = std::find_if(workloads().begin(), workloads().end(),
                                  [&](const Workload& w) { return name == w.name; });
  if (found == workloads().end()) {
    std::fprintf(stderr, "error: '%s' is not a workload; there are:%s\n", name.c_str(),
                 names().c_str());
    return 2;
  }
  const auto started = engine::llama::start_library();
  if (!started) {
    std::fprintf(stderr, "error: %s\n", started.error().c_str());
    return 1;
  }
  return run_one(*found, options);
}

}  // namespace fermata::bench
