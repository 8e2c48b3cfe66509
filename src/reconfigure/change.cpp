#include "reconfigure/change.h"

#include <algorithm>

namespace fermata::reconfigure {
namespace {

std::string mib(Bytes bytes) { return std::to_string(bytes.value >> 20) + " MiB"; }

Refusal too_small(std::span<const Request> requests, Tokens window) {
  Refusal out{.kind = RefusalKind::too_small, .message = {}};
  Tokens least{0};
  for (const Request& request : requests) {
    if (request.least <= window) continue;
    least = std::max(least, request.least);
    out.requests.push_back(request.id);
  }
  out.message = std::to_string(out.requests.size()) + " requests under way do not fit " +
                std::to_string(window.value) +
                " tokens each; wait for their end, or give each at least " +
                std::to_string(least.value);
  return out;
}

std::string find_oddity(const Geometry& to, const Situation& situation) {
  if (to.n_ctx < Tokens(2)) return "n_ctx must be 2 or more";
  if (situation.deterministic && to.layout != Layout::split) {
    return "kv_unified must be false: with --deterministic every sequence has a seat of its own";
  }
  if (to.n_ctx < situation.chunk) {
    return "n_ctx must be " + std::to_string(situation.chunk.value) +
           " or more: with --deterministic prompts are computed in pieces of that length";
  }
  return find_fault(to, situation.flash_attention);
}

Result<Path, Refusal> choose_path(const Situation& situation) {
  const Cost& cost = situation.cost;
  const bool fits_beside = !cost.available || cost.needed <= *cost.available;
  const bool fits_in_place = !cost.available || cost.needed <= *cost.available + cost.freed;
  if (!fits_in_place) {
    return Err(Refusal{.kind = RefusalKind::no_memory,
                       .message = "the new context needs about " + mib(cost.needed) + ", and " +
                                  mib(*cost.available + cost.freed) +
                                  " can be had; choose a smaller n_ctx or KV type"});
  }
  if (situation.forced_path) return *situation.forced_path;
  return fits_beside ? Path::beside : Path::in_place;
}

}  // namespace

std::string_view name(Path path) { return path == Path::beside ? "beside" : "in_place"; }

std::string_view name(Fate fate) {
  switch (fate) {
    case Fate::kept_running:
      return "kept_running";
    case Fate::restored:
      return "restored";
    case Fate::parked:
      return "parked";
    case Fate::kept_in_store:
      return "kept_in_store";
    case Fate::recompute:
      return "recompute";
    case Fate::dropped:
      break;
  }
  return "dropped";
}

std::string_view name(Reason reason) {
  switch (reason) {
    case Reason::reconfigure:
      return "reconfigure";
    case Reason::no_seat:
      return "no_seat";
    case Reason::pool_full:
      return "pool_full";
    case Reason::kv_type_changed:
      return "kv_type_changed";
    case Reason::budget:
      break;
  }
  return "budget";
}

Geometry changed(const Geometry& now, const Change& change) {
  Geometry out = now;
  out.n_ctx = change.n_ctx.value_or(now.n_ctx);
  out.n_parallel = change.n_parallel.value_or(now.n_parallel);
  out.cache_type_k = change.cache_type_k.value_or(now.cache_type_k);
  out.cache_type_v = change.cache_type_v.value_or(now.cache_type_v);
  out.layout = change.layout.value_or(now.layout);
  return out;
}

Tokens window_of(const Geometry& geometry) {
  return geometry.layout == Layout::pooled ? geometry.n_ctx : geometry.n_ctx / geometry.n_parallel;
}

// In the split layout a state tells how many seats there were.
bool are_alike(const Geometry& a, const Geometry& b) {
  return a.cache_type_k == b.cache_type_k && a.cache_type_v == b.cache_type_v &&
         a.layout == b.layout && (a.layout == Layout::pooled || a.n_parallel == b.n_parallel);
}

Result<Plan, Refusal> decide(const Change& change, const Situation& situation) {
  Plan plan{.to = changed(situation.now, change)};
  if (std::string fault = find_oddity(plan.to, situation); !fault.empty()) {
    return Err(Refusal{.kind = RefusalKind::nonsense, .message = std::move(fault)});
  }
  plan.keeps_cells = situation.moves && are_alike(situation.now, plan.to);
  if (!plan.keeps_cells && !change.force) {
    return Err(Refusal{
        .kind = RefusalKind::not_exact,
        .message = "with other KV types, another layout or, where each sequence has a seat of its "
                   "own, another n_parallel, every conversation is computed again and may go on "
                   "in other words; if that is wanted, set force to true"});
  }
  const Tokens window = window_of(plan.to);
  const auto is_larger = [&](const Request& request) { return request.least > window; };
  if (std::ranges::any_of(situation.requests, is_larger)) {
    return Err(too_small(situation.requests, window));
  }
  auto path = choose_path(situation);
  if (!path) return Err(path.error());
  plan.path = *path;
  return plan;
}

}  // namespace fermata::reconfigure
