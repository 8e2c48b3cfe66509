#include "bench/process.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>

namespace fermata::bench {

std::int64_t ProcessFigures::all_cpu_ns() const {
  std::int64_t sum = 0;
  for (const auto& [thread, ns] : cpu_ns) sum += ns;
  return sum;
}

Result<ProcessFigures, std::string> look_at(pid_t pid) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path("/proc") / std::to_string(pid);
  ProcessFigures out;
  std::ifstream status(folder / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) out.resident_bytes = std::atoll(line.c_str() + 6) * 1024;
  }
  std::error_code error;
  for (fs::directory_iterator at(folder / "task", error), end; !error && at != end;
       at.increment(error)) {
    std::int64_t ns = 0;
    // A thread that ends meanwhile has no file any more.
    if (!(std::ifstream(at->path() / "schedstat") >> ns)) continue;
    out.cpu_ns[std::atoi(at->path().filename().c_str())] = ns;
  }
  if (out.cpu_ns.empty()) return Err("nothing is known of process " + std::to_string(pid));
  return out;
}

std::int64_t cpu_ns_beside_busiest(const ProcessFigures& before, const ProcessFigures& after) {
  std::int64_t sum = 0, most = 0;
  for (const auto& [thread, ns] : after.cpu_ns) {
    const auto was = before.cpu_ns.find(thread);
    const std::int64_t used = ns - (was == before.cpu_ns.end() ? 0 : was->second);
    sum += used;
    most = std::max(most, used);
  }
  return sum - most;
}

void allow_many_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace fermata::bench
