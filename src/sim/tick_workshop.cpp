#include "sim/tick_workshop.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace fermata::sim {
namespace {

constexpr std::int64_t ticks_max = 6;
constexpr Bytes bytes_per_cell{24};

}  // namespace

void TickWorkshop::begin(const Geometry& geometry) {
  FERMATA_CHECK(!building_, "two builds at once");
  building_ = geometry;
  ticks_left_ = random_.between(0, ticks_max);
}

std::optional<reconfigure::Built> TickWorkshop::take() {
  if (!building_ || --ticks_left_ >= 0) return std::nullopt;
  return build(*std::exchange(building_, std::nullopt));
}

reconfigure::Built TickWorkshop::build(const Geometry& geometry) {
  if (random_.chance(fault_percent_)) return Err(std::string("it failed on purpose"));
  engines_.push_back(std::make_unique<engine::fake::FakeEngine>(spec_, geometry, options_));
  return engines_.back().get();
}

void TickWorkshop::calm() {
  fault_percent_ = 0;
  spec_.faults = {};
  for (const auto& engine : engines_) engine->set_faults({});
}

void TickWorkshop::remove(engine::Engine& engine) {
  const auto count = std::erase_if(engines_, [&](const auto& one) { return one.get() == &engine; });
  FERMATA_CHECK(count == 1, "an engine that is not the workshop's");
}

void TickWorkshop::release_memory(bool /*weights*/) {
  FERMATA_CHECK(engines_.empty() && !building_, "an engine is there");
}

reconfigure::Cost TickWorkshop::cost(const Geometry& now, const Geometry& to) const {
  return {.needed = bytes_per_cell * to.n_ctx.value,
          .freed = bytes_per_cell * now.n_ctx.value,
          .available = {}};
}

Bytes TickWorkshop::bytes_per_token(const Geometry& /*geometry*/) const { return bytes_per_cell; }

engine::Fingerprint TickWorkshop::fingerprint(const Geometry& /*geometry*/) const { return {}; }

engine::fake::FakeEngine& TickWorkshop::engine() const {
  FERMATA_CHECK(!engines_.empty(), "no engine is there");
  return *engines_.front();
}

}  // namespace fermata::sim
