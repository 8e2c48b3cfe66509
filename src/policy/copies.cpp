#include "policy/copies.h"

#include <algorithm>

namespace fermata::policy {
namespace {

bool touches(const Plan& plan, Seat seat) {
  const auto is_it = [&](const Admission& admission) {
    return admission.seat == seat || admission.source == seat;
  };
  const auto takes = [&](const Resume& resume) { return resume.seat == seat; };
  if (std::any_of(plan.resume.begin(), plan.resume.end(), takes)) return true;
  return std::find(plan.evict.begin(), plan.evict.end(), seat) != plan.evict.end() ||
         std::any_of(plan.admit.begin(), plan.admit.end(), is_it);
}

// Looking at a cell costs a row about 1/20 of what bringing the cell back does.
constexpr Tokens rows_that_pay{64};
// More is not copied while streams wait for it.
constexpr std::int64_t blocks_at_once = 4;

}  // namespace

void plan_clearing(const View& view, Plan& plan) {
  if (!view.clears_idle || view.layout != Layout::pooled || plan.run.empty()) return;
  Tokens rows{0};
  bool anyone_decodes = false, anyone_reads = false;
  for (const Run& run : plan.run) {
    rows += run.rows;
    const bool decodes = view.running[run.running].phase == Phase::decode;
    (decodes ? anyone_decodes : anyone_reads) = true;
  }
  if (!anyone_reads) return;
  const SeatView* next = nullptr;
  for (const SeatView& seat : view.seats) {
    if (seat.use != SeatUse::idle || !seat.is_kept || seat.exclusive == Tokens(0)) continue;
    if (anyone_decodes && seat.uncopied > view.block * blocks_at_once) continue;
    if (seat.rows_since + rows < rows_that_pay || touches(plan, seat.seat)) continue;
    if (next == nullptr || seat.last_used < next->last_used) next = &seat;
  }
  if (next != nullptr) plan.evict.push_back(next->seat);
}

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
