#include "policy/copies.h"

#include <algorithm>

namespace fermata::policy {
namespace {

bool touches(const Plan& plan, Seat seat) {
  const auto is_it = [&](const Admission& admission) {
    return admission.seat == seat || admission.source == seat;
  };
  return std::find(plan.evict.begin(), plan.evict.end(), seat) != plan.evict.end() ||
         std::any_of(plan.admit.begin(), plan.admit.end(), is_it);
}

}  // namespace

void plan_copies(const View& view, Plan& plan) {
  const bool moves = !plan.park.empty() || !plan.resume.empty();
  if (view.copies_max <= 0 || moves) return;
  const SeatView* next = nullptr;
  for (const SeatView& seat : view.seats) {
    if (seat.use != SeatUse::idle || seat.uncopied == Tokens(0)) continue;
    if (touches(plan, seat.seat)) continue;
    if (next == nullptr || seat.last_used < next->last_used) next = &seat;
  }
  if (next == nullptr) return;
  const auto mirrored = static_cast<std::int32_t>(plan.mirror.size());
  for (std::int32_t i = mirrored; i < view.copies_max; ++i) plan.copy.push_back({next->seat});
}

}  // namespace fermata::policy
