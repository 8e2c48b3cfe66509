// What can be measured. Each workload says what it compares and which ratio is good.
#pragma once

#include "base/result.h"
#include "bench/report.h"

#include <string>
#include <vector>

namespace fermata::bench {

struct BenchOptions {
  int threads = 1;
  int pairs = 5;  // Repetitions; medians are over these.
};

struct Workload {
  const char* name;
  const char* what;
  // The figures, with a "ratio" where two things are compared; or one line that says why there are
  // none.
  Result<Json, std::string> (*run)(const BenchOptions&);
};

const std::vector<Workload>& workloads();

Result<Json, std::string> run_decode(const BenchOptions& options);
Result<Json, std::string> run_decode_tiny(const BenchOptions& options);
Result<Json, std::string> run_throughput(const BenchOptions& options);
Result<Json, std::string> run_ttft(const BenchOptions& options);
Result<Json, std::string> run_prefix(const BenchOptions& options);
Result<Json, std::string> run_http(const BenchOptions& options);
Result<Json, std::string> run_itl(const BenchOptions& options);
Result<Json, std::string> run_overcommit(const BenchOptions& options);
Result<Json, std::string> run_park(const BenchOptions& options);
Result<Json, std::string> run_untouched(const BenchOptions& options);
Result<Json, std::string> run_idle(const BenchOptions& options);
Result<Json, std::string> run_timeline(const BenchOptions& options);
Result<Json, std::string> run_tick(const BenchOptions& options);
Result<Json, std::string> run_reconfigure(const BenchOptions& options);
Result<Json, std::string> run_change_timeline(const BenchOptions& options);
Result<Json, std::string> run_lookup(const BenchOptions& options);
Result<Json, std::string> run_restore(const BenchOptions& options);
Result<Json, std::string> run_restart(const BenchOptions& options);
Result<Json, std::string> run_agents(const BenchOptions& options);
Result<Json, std::string> run_decode_pages(const BenchOptions& options);
Result<Json, std::string> run_start(const BenchOptions& options);

}  // namespace fermata::bench
