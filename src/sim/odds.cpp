#include "sim/odds.h"

#include <algorithm>
#include <array>

#include <spdlog/fmt/fmt.h>

namespace fermata::sim {
namespace {

using engine::MemoryKind;

constexpr std::array<Memory, 10> all_memories = {{
    {"attention_pooled", MemoryKind::attention, Layout::pooled},
    {"attention_split", MemoryKind::attention, Layout::split},
    {"window_pooled", MemoryKind::sliding_window, Layout::pooled},
    {"window_split", MemoryKind::sliding_window, Layout::split},
    {"recurrent", MemoryKind::recurrent, Layout::pooled},
    {"hybrid", MemoryKind::hybrid, Layout::pooled},
    {"attention_deterministic", MemoryKind::attention, Layout::split, true},
    {"window_deterministic", MemoryKind::sliding_window, Layout::split, true},
    {"recurrent_deterministic", MemoryKind::recurrent, Layout::split, true},
    {"hybrid_deterministic", MemoryKind::hybrid, Layout::split, true},
}};

int draw_int(Random& random, std::int64_t low, std::int64_t high) {
  return static_cast<int>(random.between(low, high));
}

// Zero in most worlds.
int draw_rare(Random& random, int percent_of_worlds, std::int64_t most) {
  return random.chance(percent_of_worlds) ? draw_int(random, 1, most) : 0;
}

void draw_preemption(Random& random, scheduler::SchedulerOptions& options) {
  options.overcommit = random.chance(75);
  options.preempt.victim = static_cast<policy::Victim>(
      random.between(0, static_cast<std::int64_t>(policy::Victim::cost)));
  options.preempt.quantum = Tokens(random.between(1, 40));
  options.preempt.rotate_after = Micros(random.between(0, 20'000));
  options.preempt.every = Tokens(random.chance(40) ? random.between(1, 20) : 0);
  options.block = Tokens(random.between(2, 24));
  options.bytes_per_token = Bytes(24) + engine::state_bytes_per_cell;
  options.preempt_ram.reset();
  if (random.chance(70)) options.preempt_ram = Bytes(random.between(0, 8000));
  options.cache_min = Tokens(random.between(1, 40));
  options.copies_idle = random.chance(70);
  if (random.chance(60)) {
    options.cache_ram.reset();
    if (random.chance(70)) options.cache_ram = Bytes(random.between(1, 12'000));
  }
}

void draw_engine(Random& random, RigSpec& spec) {
  engine::fake::FakeModelSpec& model = spec.model;
  model.seed = random();
  model.eos_every = random.chance(50) ? draw_int(random, 5, 60) : 0;
  model.cost.base = Micros(random.between(1, 500));
  model.cost.per_row = Micros(random.between(1, 100));
  model.cost.per_cell_ns = random.between(0, 100);
  // From RAM to a slow tier: up to 50 microseconds a token.
  model.cost.per_moved_cell_ns = random.chance(30) ? random.between(0, 50'000) : 0;
  model.faults.move_percent = draw_rare(random, 30, 60);
  model.faults.no_room_percent = draw_rare(random, 25, 25);
  model.faults.broken_percent = draw_rare(random, 10, 2);
}

// Of the geometry, and of sleep. A context that is shifted leaves other tokens in another window.
void draw_changes(Random& random, Odds& odds) {
  const int changes = draw_rare(random, 35, 10);
  const int faults = draw_rare(random, 40, 60);
  const std::int64_t path = random.between(0, 2), idle = random.between(0, 20);
  odds.spec.workshop_seed = random();
  if (random.chance(30)) odds.spec.scheduler.sleep = {Micros(idle * 1000), Micros(idle * 2000)};
  if (path == 1) odds.spec.scheduler.change_path = reconfigure::Path::beside;
  if (path == 2) odds.spec.scheduler.change_path = reconfigure::Path::in_place;
  if (!odds.spec.scheduler.context_shift) odds.change_percent = changes;
  odds.build_fault_percent = faults;
}

// Something slower than RAM, that holds about one sequence or several on their way.
void draw_spill(Random& random, RigSpec& spec) {
  if (!random.chance(50)) return;
  spec.spill = SpillSpec{.ticks_max = random.between(0, 12),
                         .fault_percent = draw_rare(random, 40, 50),
                         .seed = random()};
  spec.scheduler.page_ram = Bytes(random.between(1, 9000));
}

}  // namespace

std::span<const Memory> memories() { return all_memories; }

std::optional<Memory> memory_from(std::string_view name) {
  const auto found = std::find_if(all_memories.begin(), all_memories.end(),
                                  [&](const Memory& memory) { return memory.name == name; });
  return found == all_memories.end() ? std::nullopt : std::optional(*found);
}

Odds draw_odds(Random& random, const std::optional<Memory>& memory) {
  Odds odds;
  const auto drawn = static_cast<std::size_t>(
      random.between(0, static_cast<std::int64_t>(all_memories.size()) - 1));
  odds.memory = memory.value_or(all_memories[drawn]);
  odds.spec.model.kind = odds.memory.kind;
  odds.spec.geometry.layout = odds.memory.layout;
  const bool split = odds.memory.layout == Layout::split;
  draw_engine(random, odds.spec);
  odds.spec.geometry.n_parallel = draw_int(random, 1, 6);
  odds.spec.geometry.n_ctx = Tokens(random.between(4, 20) * 16 * (split ? 6 : 1));
  odds.spec.engine.n_batch = Tokens(random.between(1, 80));
  odds.spec.engine.n_ubatch = Tokens(random.between(1, 40));
  odds.spec.scheduler.events_max = static_cast<std::size_t>(random.between(1, 12));
  odds.spec.scheduler.waiting_max = static_cast<std::size_t>(random.between(4, 40));
  draw_preemption(random, odds.spec.scheduler);
  if (odds.memory.deterministic) {
    make_deterministic(odds.spec);
    // A reply is computed again one row a tick: smaller, and less often.
    odds.spec.geometry.n_ctx = odds.spec.geometry.n_ctx / 6;
    odds.spec.scheduler.preempt.every = odds.spec.scheduler.preempt.every * 8;
  }
  odds.requests = draw_int(random, 1, 24);
  odds.arrival_percent = draw_int(random, 2, 60);
  odds.cancel_percent = draw_int(random, 0, 3);
  odds.slow_percent = draw_int(random, 0, 80);
  odds.stalled_percent = draw_rare(random, 20, 60);
  const int holds = draw_rare(random, 50, 10);
  odds.hold_percent = odds.spec.scheduler.overcommit ? holds : 0;
  odds.shared_prefix_percent = draw_int(random, 0, 90);
  odds.faulty_ticks = draw_int(random, 0, 4000);
  odds.group_percent = draw_rare(random, 50, 60);
  const bool can_shift = odds.spec.scheduler.overcommit && !odds.memory.deterministic;
  odds.spec.scheduler.context_shift = random.chance(30) && can_shift;
  draw_changes(random, odds);
  draw_spill(random, odds.spec);
  return odds;
}

std::string describe(const Odds& odds) {
  const RigSpec& spec = odds.spec;
  const scheduler::SchedulerOptions& options = spec.scheduler;
  const engine::fake::CostModel& cost = spec.model.cost;
  const engine::fake::Faults& faults = spec.model.faults;
  std::string out;
  out += fmt::format("  memory    {}, {} cells, {} seats, batch {}, ubatch {}\n", odds.memory.name,
                     spec.geometry.n_ctx.value, spec.geometry.n_parallel, spec.engine.n_batch.value,
                     spec.engine.n_ubatch.value);
  out += fmt::format(
      "  policy    {}, victim {}, quantum {}, rotation after {} us, forced parks every {} tokens, "
      "budget {} bytes\n"
      "  cache     {} bytes, conversations of {} tokens and more{}{}\n",
      options.overcommit ? "preempting" : "admission only", name(options.preempt.victim),
      options.preempt.quantum.value, options.preempt.rotate_after.value,
      options.preempt.every.value,
      options.preempt_ram ? std::to_string(options.preempt_ram->value) : "unlimited",
      options.cache_ram ? std::to_string(options.cache_ram->value) : "unlimited",
      options.cache_min.value, options.copies_idle ? ", copied while idle" : "",
      options.context_shift ? "; full windows are shifted" : "");
  if (spec.spill) {
    out += fmt::format(
        "  slower    {} bytes on the way, up to {} ticks, {} % of moves refused or lost\n",
        options.page_ram.value, spec.spill->ticks_max, spec.spill->fault_percent);
  }
  out += fmt::format(
      "  cost      {} us a step, {} us a row, {} ns a cell attended, {} ns a cell moved\n",
      cost.base.value, cost.per_row.value, cost.per_cell_ns, cost.per_moved_cell_ns);
  out += fmt::format(
      "  clients   {} requests, arriving in {} % of ticks, one token in {} ends a reply; "
      "{} % share a beginning, {} % want several choices\n"
      "            {} events unread, {} waiting; a tick: {} % leave, {} % do not read; {} % "
      "stalled\n",
      odds.requests, odds.arrival_percent, spec.model.eos_every, odds.shared_prefix_percent,
      odds.group_percent, options.events_max, options.waiting_max, odds.cancel_percent,
      odds.slow_percent, odds.stalled_percent);
  out += fmt::format(
      "            an operator parks somebody, or lets somebody back, in {} % of ticks\n",
      odds.hold_percent);
  const scheduler::SleepOptions& sleep = options.sleep;
  out +=
      fmt::format("  geometry  changes in {} % of ticks, {} % of builds fail{}\n",
                  odds.change_percent, odds.build_fault_percent,
                  sleep.context ? fmt::format("; asleep after {} us", sleep.context->value) : "");
  out += fmt::format(
      "  faults    until tick {}: {} % of moves fail, {} % of steps have no room, {} % break\n",
      odds.faulty_ticks, faults.move_percent, faults.no_room_percent, faults.broken_percent);
  return out;
}

WaitBound wait_bound(const RigSpec& spec, const engine::EngineLimits& limits) {
  const engine::fake::CostModel& cost = spec.model.cost;
  const std::int64_t seats = limits.seats, window = limits.window.value;
  const bool shared =
      spec.geometry.layout == Layout::pooled && spec.model.kind != engine::MemoryKind::recurrent;
  const std::int64_t cells = shared ? limits.cells.value : window * seats;
  const std::int64_t attended_us = cost.per_cell_ns * window / 1000 + 1;
  // The longest step of decode rows alone, and what a row of a prompt adds.
  const std::int64_t step_us = cost.base.value + seats * (cost.per_row.value + attended_us);
  const std::int64_t row_us =
      std::max(cost.per_prompt_row.value_or(cost.per_row), cost.per_row).value + attended_us;
  // Beside decoding streams a prompt gets as many rows as take half of their time, at
  // least one, as far as the batch allows.
  const std::int64_t rows_a_step =
      std::clamp<std::int64_t>(step_us / (2 * row_us), 1, limits.batch.value - seats + 1);
  // With fixed shapes replies are computed again one row a step, and a turn is as long as that.
  const bool fixed = spec.scheduler.deterministic;
  const std::int64_t prompts_us = cells * (row_us + step_us / (fixed ? 1 : rows_a_step));
  const std::int64_t quantum_us =
      std::max(spec.scheduler.preempt.quantum.value * step_us, window * (fixed ? step_us : row_us));
  const std::int64_t copies_us = 2 * cells * cost.per_moved_cell_ns / 1000;
  WaitBound out;
  out.rotate_after = spec.scheduler.preempt.rotate_after;
  // It comes back from where it is slower while others make steps, or nobody does; some tries are
  // refused.
  const std::int64_t tries = spec.spill && spec.spill->fault_percent > 0 ? 8 : 0;
  const std::int64_t slow_us =
      spec.spill ? (spec.spill->ticks_max + 1 + tries) * std::max(step_us, idle_tick.value) : 0;
  out.place = Micros((prompts_us + quantum_us + copies_us + slow_us + 2 * seats * step_us) * 2);
  return out;
}

}  // namespace fermata::sim
