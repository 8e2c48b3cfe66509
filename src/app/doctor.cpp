#include "app/doctor.h"

#include "app/huge_pages.h"
#include "app/instance.h"
#include "engine/llama/backend.h"

#include <cstdio>
#include <fstream>
#include <thread>

#include <spdlog/fmt/fmt.h>

namespace fermata::app {
namespace {

class Report {
 public:
  void ok(const std::string& what) { line("ok", what); }
  void note(const std::string& what) { line("note", what); }
  void problem(const std::string& what, const std::string& mend) {
    ++problems_;
    line("problem", what);
    std::printf("%10s %s\n", "mend:", mend.c_str());
  }
  int problems() const { return problems_; }

 private:
  static void line(const char* kind, const std::string& what) {
    std::printf("%9s  %s\n", kind, what.c_str());
  }
  int problems_ = 0;
};

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "MemAvailable:   123 kB" in MiB; 0 when the kernel does not say.
long meminfo_mib(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stol(line.substr(name.size() + 1)) / 1024;
  }
  return 0;
}

void check_library(Report& report) {
  const auto started = engine::llama::start_library();
  if (!started) {
    report.problem(started.error(), "run `make setup`, which fetches the pinned release");
    return;
  }
  report.ok(build_info());
  bool has_cpu = false;
  for (const engine::llama::BackendInfo& device : engine::llama::describe_backends()) {
    has_cpu |= device.kind == "cpu";
    report.ok(device.kind + " backend " + device.name + ": " + device.description +
              (device.features.empty() ? "" : " (" + device.features + ")"));
  }
  if (!has_cpu) {
    report.problem("no CPU backend was found beside libllama",
                   "run `make setup`, or name the folder with --backend-dir");
  }
}

void check_memory(Report& report) {
  constexpr long low_mib = 1024;
  const long available = meminfo_mib("MemAvailable"), total = meminfo_mib("MemTotal");
  const std::string text =
      std::to_string(available) + " of " + std::to_string(total) + " MiB of memory available";
  if (available < low_mib) {
    report.problem(text, "free memory, or choose a smaller model or -c");
  } else {
    report.ok(text);
  }
  const std::string huge = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  if (huge.empty()) {
    report.note("transparent huge pages: the kernel does not say");
  } else if (huge.find("[never]") != std::string::npos) {
    report.problem("transparent huge pages are off: new contexts take longer to touch",
                   "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  } else {
    report.ok("transparent huge pages: " + huge);
  }
  const auto speeds = measure_page_speeds();
  if (!speeds) return report.note("no memory to measure what huge pages bring");
  report.ok(fmt::format("reading scattered memory: {:.1f} GB/s on huge pages, {:.1f} on small ones",
                        speeds->huge_gb_per_s, speeds->small_gb_per_s));
}

}  // namespace

int run_doctor(std::span<const std::string_view> args) {
  if (!args.empty()) {
    std::fprintf(stderr, "error: doctor takes no arguments\n");
    return 2;
  }
  Report report;
  report.ok(std::to_string(std::thread::hardware_concurrency()) + " cores");
  check_library(report);
  check_memory(report);
  std::printf("%s\n", report.problems() == 0 ? "No problem found." : "See the mends above.");
  return report.problems() == 0 ? 0 : 1;
}

}  // namespace fermata::app
