#include "sim/workload.h"

#include "base/check.h"
#include "base/random.h"

#include <algorithm>
#include <array>
#include <memory>

namespace fermata::sim {
namespace {

constexpr Bytes bytes_per_cell{24};  // Of the fake engine.

std::string text_of(Random& random, std::int64_t length) {
  std::string out;
  for (std::int64_t i = 0; i < length; ++i) out += static_cast<char>(random.between('a', 'z'));
  return out;
}

Ask ask_for(Random& random, const std::string& prompt, std::int64_t reply) {
  Ask ask;
  ask.prompt = prompt;
  ask.grammar = "root ::= \"" + text_of(random, reply) + "\"";
  ask.max_tokens = 2 * reply;
  return ask;
}

std::vector<Arrival> chat(std::uint64_t seed) {
  Random random(seed);
  std::vector<Arrival> out;
  Micros at{0};
  for (int i = 0; i < 96; ++i) {
    const std::string prompt = text_of(random, random.between(40, 400));
    out.push_back({at, ask_for(random, prompt, random.between(40, 400))});
    at += Micros(random.between(0, 500'000));
  }
  return out;
}

std::vector<Arrival> agents(std::uint64_t seed) {
  Random random(seed);
  std::vector<Arrival> out;
  const std::string system = text_of(random, 800);
  Micros at{0};
  for (int i = 0; i < 40; ++i) {
    const std::string prompt = system + text_of(random, random.between(600, 2400));
    out.push_back({at, ask_for(random, prompt, random.between(100, 700))});
    at += Micros(random.between(0, 2'000'000));
  }
  return out;
}

std::vector<Arrival> stories(std::uint64_t seed) {
  Random random(seed);
  std::vector<Arrival> out;
  Micros at{0};
  for (int i = 0; i < 24; ++i) {
    const std::string prompt = text_of(random, random.between(30, 120));
    out.push_back({at, ask_for(random, prompt, random.between(600, 1600))});
    at += Micros(random.between(0, 3'000'000));
  }
  return out;
}

std::vector<Arrival> burst(std::uint64_t seed) {
  Random random(seed);
  std::vector<Arrival> out;
  for (int i = 0; i < 64; ++i) {
    const std::string prompt = text_of(random, random.between(100, 600));
    out.push_back({Micros(i / 32 * 20'000'000), ask_for(random, prompt, random.between(100, 500))});
  }
  return out;
}

std::vector<Arrival> tail(std::uint64_t seed) {
  Random random(seed);
  std::vector<Arrival> out;
  Micros at{0};
  for (int i = 0; i < 96; ++i) {
    const bool huge = random.chance(10);
    const std::string prompt =
        text_of(random, huge ? random.between(800, 1600) : random.between(20, 150));
    out.push_back(
        {at, ask_for(random, prompt, huge ? random.between(400, 1000) : random.between(20, 200))});
    at += Micros(random.between(0, 600'000));
  }
  return out;
}

constexpr std::array<Workload, 5> all_workloads = {{
    {"chat", "96 chats, prompts and replies of 40 to 400 tokens", 16, chat},
    {"agents", "40 prompts of 1,400 to 3,200 tokens with one beginning, replies of 100 to 700", 8,
     agents},
    {"stories", "24 replies of 600 to 1,600 tokens", 8, stories},
    {"burst", "32 requests at once, twice", 16, burst},
    {"tail", "96 short requests, one in ten with thousands of tokens", 24, tail},
}};

std::int64_t tokens_of(const Ask& ask) {
  return static_cast<std::int64_t>(ask.prompt.size()) + ask.max_tokens / 2;
}

// One request on its way, with the times at which its client heard of it.
struct Visitor {
  std::unique_ptr<Client> client;
  Micros last;
  std::size_t heard = 0;

  bool done() const { return client->n_final > 0; }
};

void listen(Visitor& visitor, Micros now, RunFigures& figures, std::vector<Micros>& gaps) {
  visitor.client->read();
  const std::size_t count = visitor.client->tokens.size();
  if (count == visitor.heard) return;
  const Micros silent = now - visitor.last;
  Micros& longest = visitor.heard == 0 ? figures.longest_start : figures.longest_gap;
  longest = std::max(longest, silent);
  if (visitor.heard > 0) gaps.push_back(silent);
  visitor.heard = count;
  visitor.last = now;
}

}  // namespace

std::span<const Workload> workloads() { return all_workloads; }

RigSpec machine_for(const Workload& workload, const std::vector<Arrival>& arrivals,
                    const Tightness& tightness) {
  std::int64_t sum = 0, longest = 0;
  for (const Arrival& arrival : arrivals) {
    sum += tokens_of(arrival.ask);
    longest = std::max(longest, tokens_of(arrival.ask));
  }
  const std::int64_t house = sum / static_cast<std::int64_t>(arrivals.size()) * workload.seats;
  RigSpec spec;
  spec.geometry.n_ctx = Tokens(std::max(house / tightness.over, longest + 16));
  spec.geometry.n_parallel = workload.seats;
  spec.engine.n_batch = Tokens(2048);
  spec.engine.n_ubatch = Tokens(512);
  spec.model.cost.base = Micros(5000);
  spec.model.cost.per_row = Micros(1000);
  spec.model.cost.per_prompt_row = Micros(250);
  spec.model.cost.per_cell_ns = 50;
  spec.model.cost.per_moved_cell_ns = 96 * 1024 / 5;  // 5 bytes a nanosecond.
  spec.scheduler.bytes_per_token = bytes_per_cell;
  spec.scheduler.preempt_ram.reset();
  if (tightness.ram_percent >= 0) {
    spec.scheduler.preempt_ram =
        bytes_per_cell * (spec.geometry.n_ctx.value * tightness.ram_percent / 100);
  }
  return spec;
}

RunFigures run(const RigSpec& spec, const std::vector<Arrival>& arrivals) {
  Rig rig(spec);
  RunFigures figures;
  std::vector<Visitor> visitors;
  std::vector<Micros> gaps;
  std::size_t open = arrivals.size();
  while (open > 0) {
    const Micros now = rig.clock().now();
    while (visitors.size() < arrivals.size() && arrivals[visitors.size()].at <= now) {
      visitors.push_back({rig.submit(arrivals[visitors.size()].ask), now});
    }
    if (!rig.tick()) {
      FERMATA_CHECK(visitors.size() < arrivals.size(), "the server stands still with work to do");
      rig.clock().advance(arrivals[visitors.size()].at - now);
      continue;
    }
    for (Visitor& visitor : visitors) {
      if (visitor.done()) continue;
      listen(visitor, rig.clock().now(), figures, gaps);
      if (!visitor.done()) continue;
      FERMATA_CHECK(visitor.client->final->reason == FinishReason::eos, "a reply is not complete");
      --open;
    }
  }
  const scheduler::SchedulerStats& stats = rig.scheduler().stats();
  figures.makespan = rig.clock().now();
  figures.parks =
      static_cast<std::int64_t>(stats.parks_swap.value() + stats.parks_recompute.value());
  figures.recomputed = static_cast<std::int64_t>(stats.recomputed_tokens.value());
  std::sort(gaps.begin(), gaps.end());
  figures.p99_gap = gaps[gaps.size() * 99 / 100];
  return figures;
}

}  // namespace fermata::sim
