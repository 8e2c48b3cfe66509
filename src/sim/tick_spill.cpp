#include "sim/tick_spill.h"

#include "base/check.h"

#include <utility>

namespace fermata::sim {

void TickSpill::begin(Kept& kept) {
  kept.is_moving = true;
  kept.ticks_left = random_.between(0, spec_.ticks_max);
  kept.fails = random_.chance(spec_.fault_percent);
}

bool TickSpill::put(RequestId id, const kv::Image& image, const Owner& /*owner*/,
                    double /*price_seconds*/) {
  FERMATA_CHECK(!kept_.contains(id), "two images of one request");
  if (random_.chance(spec_.fault_percent)) return false;
  Kept kept;
  for (const kv::Piece& piece : image.pieces) {
    kept.image.pieces.push_back(piece.share());
    kept.pieces.emplace_back(piece.bytes().begin(), piece.bytes().end());
  }
  begin(kept);
  kept_.emplace(id, std::move(kept));
  return true;
}

bool TickSpill::fetch(RequestId id) {
  const auto found = kept_.find(id);
  FERMATA_CHECK(found != kept_.end() && found->second.is_out, "fetching what is not out");
  if (found->second.is_moving) return true;
  if (random_.chance(spec_.fault_percent)) return false;
  begin(found->second);
  return true;
}

void TickSpill::reap(std::vector<kv::Spilled>& out) {
  for (auto& [id, kept] : kept_) {
    if (!kept.is_moving || kept.ticks_left-- > 0) continue;
    kept.is_moving = false;
    kv::Spilled spilled{.id = id};
    if (kept.fails) {
      // The scheduler forgets it.
    } else if (!std::exchange(kept.is_out, true)) {
      kept.image = {};
      spilled.what = kv::Spilled::What::out;
    } else {
      spilled.what = kv::Spilled::What::back;
      for (const std::vector<std::byte>& piece : kept.pieces) {
        spilled.pieces.emplace_back();
        FERMATA_CHECK(resize(spilled.pieces.back(), piece.size()), "no memory");
        std::copy(piece.begin(), piece.end(), spilled.pieces.back().begin());
      }
    }
    out.push_back(std::move(spilled));
  }
}

}  // namespace fermata::sim
