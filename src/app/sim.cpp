#include "app/sim.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "sim/compare.h"
#include "sim/seeds.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

namespace fermata::app {
namespace {

constexpr std::size_t shown_max = 10;  // Failed seeds; more say nothing new.
constexpr int progress_lines = 10;     // Where there is no terminal.

struct SimOptions {
  std::optional<std::uint64_t> seed;
  std::int64_t seeds = 0;  // 0: one.
  int threads = 0;         // 0: one per core.
  std::string memory;
  std::string plant;
  bool compare = false;
  int days = 5;
  int ram_percent = 50;
};

const std::map<std::string, sim::Plant> plants = {{"lost-final", sim::Plant::lost_final},
                                                  {"wrong-text", sim::Plant::wrong_text},
                                                  {"leaked-cell", sim::Plant::leaked_cell},
                                                  {"failed-check", sim::Plant::failed_check}};

// Flags that a schedule depends on, beside its seed; kept for the signal handler.
std::string& flags_of_schedule() {
  static std::string flags;
  return flags;
}

std::string again(std::uint64_t seed) {
  return "fermata sim --seed " + std::to_string(seed) + flags_of_schedule();
}

// A failed check has said what; this says how to see it again. Only what a handler may do.
void say_seed(int) {
  const auto write_out = [](const char* text, std::size_t length) {
    if (write(STDERR_FILENO, text, length) < 0) return;
  };
  char digits[20];
  std::size_t at = sizeof digits;
  for (std::uint64_t seed = sim::seed_of_this_thread(); seed > 0; seed /= 10) {
    digits[--at] = static_cast<char>('0' + seed % 10);
  }
  constexpr std::string_view lead = "again: fermata sim --seed ";
  write_out(lead.data(), lead.size());
  write_out(digits + at, sizeof digits - at);
  write_out(flags_of_schedule().data(), flags_of_schedule().size());
  write_out("\n", 1);
}

void print_figures(const sim::Figures& figures) {
  std::printf(
      "%lld requests (%lld cancelled, %lld failed as they had to), %lld ticks, %lld parks, %lld "
      "resumes, %lld tokens recomputed, %lld conversations fetched, %lld steps without room, %lld "
      "broken, %lld changes of the geometry, asleep %lld times, %lld images out of RAM, %lld back, "
      "%lld lost\n"
      "longest wait of a parked request: %.2f of its bound\n",
      static_cast<long long>(figures.requests), static_cast<long long>(figures.cancelled),
      static_cast<long long>(figures.failed), static_cast<long long>(figures.ticks),
      static_cast<long long>(figures.parks), static_cast<long long>(figures.resumes),
      static_cast<long long>(figures.recomputed), static_cast<long long>(figures.fetched),
      static_cast<long long>(figures.no_room), static_cast<long long>(figures.broken),
      static_cast<long long>(figures.changes), static_cast<long long>(figures.sleeps),
      static_cast<long long>(figures.spilled), static_cast<long long>(figures.unspilled),
      static_cast<long long>(figures.spills_lost), figures.wait_of_bound);
}

void print_failure(std::uint64_t seed, const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) std::printf("  FAULT     %s\n", fault.c_str());
  std::printf("again: %s\n", again(seed).c_str());
}

// A line that updates on a terminal, else a few lines.
class Progress {
 public:
  explicit Progress(std::int64_t total) : total_(total) {}

  void tell(std::int64_t done, const sim::FailedSeeds& failed) {
    // At once: whoever stops it has them.
    for (; shown_ < failed.size(); ++shown_) {
      std::fprintf(stderr, "%sfailed: %s\n", terminal_ ? "\n" : "",
                   again(failed[shown_].first).c_str());
    }
    const std::int64_t tenth = done * progress_lines / total_;
    const std::int64_t grain = terminal_ ? std::max<std::int64_t>(total_ / 1000, 1) : 0;
    const bool due = terminal_ ? done % grain == 0 || done == total_ : tenth > told_;
    if (!due) return;
    told_ = tenth;
    std::fprintf(
        stderr,
        terminal_ ? "\r%lld of %lld seeds, %lld failed" : "%lld of %lld seeds, %lld failed\n",
        static_cast<long long>(done), static_cast<long long>(total_),
        static_cast<long long>(failed.size()));
    if (terminal_ && done == total_) std::fputc('\n', stderr);
  }

 private:
  const std::int64_t total_;
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::int64_t told_ = 0;
  std::size_t shown_ = 0;  // Of those that failed.
};

int play_one(std::uint64_t seed, const sim::ScheduleOptions& schedule) {
  std::printf("seed %llu\n%s", static_cast<unsigned long long>(seed),
              sim::describe_seed(seed, schedule).c_str());
  std::fflush(stdout);
  const sim::SeedsOutcome outcome =
      sim::play_seeds({seed, 1, 1}, schedule, [](std::int64_t, const sim::FailedSeeds&) {});
  print_figures(outcome.figures);
  if (outcome.failed.empty()) {
    std::printf("everything held\n");
    return 0;
  }
  print_failure(seed, outcome.failed.front().second);
  return 1;
}

int play_many(const sim::SeedRange& range, const sim::ScheduleOptions& schedule) {
  std::printf("seeds %llu to %llu on %d threads\n", static_cast<unsigned long long>(range.first),
              static_cast<unsigned long long>(range.first) +
                  static_cast<unsigned long long>(range.count) - 1,
              range.threads);
  std::fflush(stdout);
  Progress progress(range.count);
  const SteadyClock clock;
  const Micros began = clock.now();
  const sim::SeedsOutcome outcome = sim::play_seeds(
      range, schedule, [&](std::int64_t done, const auto& failed) { progress.tell(done, failed); });
  const double seconds = static_cast<double>((clock.now() - began).value) / 1e6;
  for (std::size_t i = 0; i < std::min(outcome.failed.size(), shown_max); ++i) {
    const auto& [seed, faults] = outcome.failed[i];
    std::printf("seed %llu failed\n%s", static_cast<unsigned long long>(seed),
                sim::describe_seed(seed, schedule).c_str());
    print_failure(seed, faults);
  }
  print_figures(outcome.figures);
  std::printf("%lld seeds in %.1f s: %zu failed\n", static_cast<long long>(range.count), seconds,
              outcome.failed.size());
  return outcome.failed.empty() ? 0 : 1;
}

int run_with(const SimOptions& options) {
  sim::ScheduleOptions schedule;
  if (!options.memory.empty()) {
    schedule.memory = sim::memory_from(options.memory);
    flags_of_schedule() += " --memory " + options.memory;
  }
  if (!options.plant.empty()) {
    schedule.plant = plants.at(options.plant);
    flags_of_schedule() += " --plant " + options.plant;
  }
  LogOptions quiet;
  quiet.disabled = true;  // The scheduler logs each broken step, which is what is wanted here.
  if (!start_logging(quiet)) return 1;
  const int cores = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
  const int threads = options.threads > 0 ? options.threads : cores;
  if (options.compare) {
    std::printf("%s", sim::compare(threads, options.days, options.ram_percent).c_str());
    return 0;
  }
  std::signal(SIGABRT, say_seed);
  // Short enough to be typed again; 0 would read as none.
  const std::uint64_t first = options.seed.value_or(system_random() % 1'000'000'000'000 + 1);
  if (options.seeds == 0) return play_one(first, schedule);
  return play_many({first, options.seeds, threads}, schedule);
}

}  // namespace

int run_sim(std::span<const std::string_view> args) {
  CLI::App app(
      "Plays random schedules: the scheduler, policy and cells of the server on an engine and a "
      "clock"
      "\nthat are not real, from one seed each. Checks that every request ends once and with its "
      "text,"
      "\nthat no cell is lost and nobody waits too long. Exit code 1: something did not hold.",
      "fermata sim");
  SimOptions options;
  std::vector<std::string> memory_names, plant_names;
  for (const sim::Memory& memory : sim::memories()) memory_names.emplace_back(memory.name);
  for (const auto& [name, plant] : plants) plant_names.push_back(name);
  CLI::Option* compare =
      app.add_flag("--compare", options.compare, "the table of policies and workloads instead");
  app.add_option("--seed", options.seed, "this one (with --seeds: the first); else a random one")
      ->check(CLI::Range(std::uint64_t{1}, ~std::uint64_t{0} >> 1))
      ->excludes(compare);
  app.add_option("--seeds", options.seeds, "so many seeds in a row, from a random one on")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->excludes(compare);
  app.add_option("-t,--threads", options.threads, "for --seeds and --compare; default: all cores")
      ->check(CLI::Range(1, 512));
  app.add_option("--memory", options.memory, "kind of memory and layout; else drawn")
      ->check(CLI::IsMember(memory_names))
      ->excludes(compare);
  app.add_option("--plant", options.plant, "a fault that must be found (test)")
      ->check(CLI::IsMember(plant_names))
      ->excludes(compare);
  app.add_option("--days", options.days, "with --compare: a row is the mean of so many")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->needs(compare);
  app.add_option("--ram", options.ram_percent,
                 "with --compare: RAM for parked bytes, in percent of the pool's; -1: no limit")
      ->check(CLI::Range(-1, 1000))
      ->capture_default_str()
      ->needs(compare);
  std::vector<std::string> words(args.rbegin(), args.rend());
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run_with(options);
}

}  // namespace fermata::app
