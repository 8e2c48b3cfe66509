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

}  // namespace

void plan_rows(const View& view, Tokens room, Plan& plan) {
  Tokens left = std::min(view.batch_max, room);
  const auto runs = [&](std::size_t i, Phase phase) {
    const RunningView& running = view.running[i];
    return running.phase == phase && !running.blocked && !leaves(plan, i);
  };
  for (std::size_t i = 0; i < view.running.size() && left > Tokens(0); ++i) {
    if (!runs(i, Phase::decode)) continue;
    plan.run.push_back({i, Tokens(1)});
    left -= Tokens(1);
  }
  if (left <= Tokens(0)) return;
  left = prefill_allowance(view.rates, view.step_budget, !plan.run.empty(), left);
  for (std::size_t i = 0; i < view.running.size() && left > Tokens(0); ++i) {
    if (!runs(i, Phase::prefill)) continue;
    const Tokens rows = std::min(left, view.running[i].rows_left);
    plan.run.push_back({i, rows});
    left -= rows;
  }
}

}  // namespace fermata::policy
