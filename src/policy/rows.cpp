#include "policy/rows.h"

#include "policy/pace.h"

#include <algorithm>

namespace fermata::policy {
namespace {

bool leaves(const Plan& plan, std::size_t running) {
  const auto parked = std::any_of(plan.park.begin(), plan.park.end(),
                                  [&](const Park& park) { return park.running == running; });
  return parked || std::find(plan.fail.begin(), plan.fail.end(), running) != plan.fail.end();
}

// The rows that a sequence in prefill has to be given at once, or none; 0: any number.
Tokens piece_of(const View& view, const RunningView& running) {
  if (view.chunk == Tokens(0)) return Tokens(0);
  if (running.prompt_left == Tokens(0)) return Tokens(1);
  const Tokens begin = view.seats[static_cast<std::size_t>(running.seat.value)].length;
  return std::min(running.prompt_left, view.chunk - Tokens(begin.value % view.chunk.value));
}

}  // namespace

void plan_rows(const View& view, Tokens room, Plan& plan) {
  Tokens left = std::min(view.batch_max, room);
  // A row that is computed again alone costs what one of a reply does.
  const auto is_single = [&](const RunningView& running) {
    return running.phase == Phase::decode || piece_of(view, running) == Tokens(1);
  };
  const auto runs = [&](std::size_t i, bool single) {
    const RunningView& running = view.running[i];
    return is_single(running) == single && !running.blocked && !leaves(plan, i);
  };
  for (std::size_t i = 0; i < view.running.size() && left > Tokens(0); ++i) {
    if (!runs(i, true)) continue;
    plan.run.push_back({i, Tokens(1)});
    left -= Tokens(1);
  }
  const bool measures = view.rates.decode_unknown && !plan.run.empty();
  if (left <= Tokens(0) || measures) return;
  const Tokens beside = left;
  Company company{.decoding = static_cast<std::int32_t>(plan.run.size())};
  for (std::size_t i = 0; i < view.running.size(); ++i) company.prompts += runs(i, false);
  left = prefill_allowance(view.rates, view.step_budget, company, left);
  bool is_first = true;
  for (std::size_t i = 0; i < view.running.size() && left > Tokens(0); ++i) {
    if (!runs(i, false)) continue;
    const RunningView& running = view.running[i];
    const Tokens piece = piece_of(view, running);
    const Tokens rows = piece > Tokens(0) ? piece : std::min(left, running.rows_left);
    if (rows > (is_first ? beside : left)) return;
    plan.run.push_back({i, rows});
    left -= rows;
    is_first = false;
  }
}

}  // namespace fermata::policy
