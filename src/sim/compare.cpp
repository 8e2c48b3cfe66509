#include "sim/compare.h"

#include "sim/workload.h"

#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <string_view>
#include <thread>

#include <spdlog/fmt/fmt.h>

namespace fermata::sim {
namespace {

struct Policy {
  std::string_view name;
  std::optional<policy::Victim> victim;  // None: admission only.
};

constexpr std::array<int, 2> over_commitments = {2, 4};

std::vector<Policy> policies() {
  std::vector<Policy> out;
  for (int v = 0; v <= static_cast<int>(policy::Victim::cost); ++v) {
    const auto victim = static_cast<policy::Victim>(v);
    out.push_back({name(victim), victim});
  }
  out.push_back({"admission-only", std::nullopt});
  return out;
}

struct Job {
  const Workload* workload;
  int over;
  Policy policy;
  RunFigures figures;
};

void run_job(Job& job, int days, int ram_percent) {
  RunFigures& mean = job.figures;
  for (int day = 1; day <= days; ++day) {
    const std::vector<Arrival> arrivals = job.workload->arrivals(static_cast<std::uint64_t>(day));
    RigSpec spec = machine_for(*job.workload, arrivals, {job.over, ram_percent});
    spec.scheduler.overcommit = job.policy.victim.has_value();
    if (job.policy.victim) spec.scheduler.preempt.victim = *job.policy.victim;
    const RunFigures figures = run(spec, arrivals);
    mean.makespan += figures.makespan / days;
    mean.longest_start += figures.longest_start / days;
    mean.longest_gap += figures.longest_gap / days;
    mean.p99_gap += figures.p99_gap / days;
    mean.parks += figures.parks;
    mean.recomputed += figures.recomputed;
  }
  mean.parks /= days;
  mean.recomputed /= days;
}

double seconds(Micros time) { return static_cast<double>(time.value) / 1e6; }

std::string row(const Job& job) {
  const RunFigures& figures = job.figures;
  return fmt::format("| {} {}x | {} | {:.1f} | {:.1f} | {:.1f} | {:.0f} | {} | {} |\n",
                     job.workload->name, job.over, job.policy.name, seconds(figures.makespan),
                     seconds(figures.longest_start), seconds(figures.longest_gap),
                     seconds(figures.p99_gap) * 1000.0, figures.parks, figures.recomputed);
}

// Geometric means over all workloads of a policy's figures over those of the default one.
std::string summary(const std::vector<Job>& jobs, const std::vector<Policy>& all) {
  const std::string_view usual = name(policy::PreemptOptions{}.victim);
  std::string out = fmt::format(
      "\nGeometric means over the workloads, each over {}:\n\n"
      "| policy | makespan | longest wait for the first token | longest gap | p99 gap |\n"
      "|---|---|---|---|---|\n",
      usual);
  for (const Policy& policy : all) {
    std::array<double, 4> sums{};
    double count = 0.0;
    for (const Job& job : jobs) {
      if (job.policy.name != policy.name) continue;
      for (const Job& base : jobs) {
        if (base.policy.name != usual || base.workload != job.workload || base.over != job.over) {
          continue;
        }
        const auto add = [&](std::size_t i, Micros ours, Micros theirs) {
          sums[i] += std::log(seconds(ours) / seconds(theirs));
        };
        add(0, job.figures.makespan, base.figures.makespan);
        add(1, job.figures.longest_start, base.figures.longest_start);
        add(2, job.figures.longest_gap, base.figures.longest_gap);
        add(3, job.figures.p99_gap, base.figures.p99_gap);
        count += 1.0;
      }
    }
    out += fmt::format("| {} |", policy.name);
    for (double sum : sums) out += fmt::format(" {:.2f} |", std::exp(sum / count));
    out += "\n";
  }
  return out;
}

}  // namespace

std::string compare(int threads, int days, int ram_percent) {
  std::vector<Job> jobs;
  const std::vector<Policy> all = policies();
  for (const Workload& workload : workloads()) {
    for (int over : over_commitments) {
      for (const Policy& policy : all) jobs.push_back({&workload, over, policy, {}});
    }
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) run_job(jobs[i], days, ram_percent);
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back(work);
    work();
  }
  std::string out =
      fmt::format("Means over {} days each; RAM for parked bytes: {}.\n\n", days,
                  ram_percent < 0 ? "no limit" : fmt::format("{} % of the pool's", ram_percent));
  for (const Workload& workload : workloads()) {
    out += fmt::format("* {}: {}; {} seats\n", workload.name, workload.what, workload.seats);
  }
  out +=
      "\n| workload | policy | makespan, s | longest wait for the first token, s | longest gap, s "
      "| "
      "p99 gap, ms | parks | recomputed tokens |\n|---|---|---|---|---|---|---|---|\n";
  for (const Job& job : jobs) out += row(job);
  return out + summary(jobs, all);
}

}  // namespace fermata::sim
