// Builds fake engines on the scheduler's own thread, late by some ticks: from one seed it is always
// the same.
#pragma once

#include "base/random.h"
#include "engine/fake/fake_engine.h"
#include "reconfigure/workshop.h"

#include <memory>
#include <optional>
#include <vector>

namespace fermata::sim {

class TickWorkshop final : public reconfigure::Workshop {
 public:
  TickWorkshop(const engine::fake::FakeModelSpec& spec, const engine::EngineOptions& options,
               std::uint64_t seed)
      : spec_(spec), options_(options), random_(seed) {}

  void begin(const Geometry& geometry) override;
  std::optional<reconfigure::Built> take() override;
  reconfigure::Built build(const Geometry& geometry) override;
  void remove(engine::Engine& engine) override;
  void discard(engine::Engine& engine) override { remove(engine); }
  void release_memory(bool weights) override;
  reconfigure::Cost cost(const Geometry& now, const Geometry& to) const override;
  Bytes bytes_per_token(const Geometry& geometry) const override;
  engine::Fingerprint fingerprint(const Geometry& geometry) const override;

  // So many builds fail.
  void set_faults(int percent) { fault_percent_ = percent; }
  // From now on nothing fails: no build, and nothing of what was built or will be.
  void calm();
  // The one that has served for longest. REQUIRES: there is one.
  engine::fake::FakeEngine& engine() const;
  std::size_t engines() const { return engines_.size(); }

 private:
  engine::fake::FakeModelSpec spec_;
  const engine::EngineOptions options_;
  Random random_;
  int fault_percent_ = 0;
  std::optional<Geometry> building_;
  std::int64_t ticks_left_ = 0;
  std::vector<std::unique_ptr<engine::fake::FakeEngine>> engines_;
};

}  // namespace fermata::sim
