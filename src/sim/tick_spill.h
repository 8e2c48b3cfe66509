// Something slower than RAM, on the scheduler's own thread: late by some ticks, and forgetful. From
// one seed it is always the same.
#pragma once

#include "base/random.h"
#include "kv/spill.h"

#include <map>
#include <vector>

namespace fermata::sim {

struct SpillSpec {
  std::int64_t ticks_max = 0;  // What a move takes at most.
  int fault_percent = 0;       // Of moves: refused, or lost.
  std::uint64_t seed = 1;
};

class TickSpill final : public kv::Spill {
 public:
  explicit TickSpill(const SpillSpec& spec) : spec_(spec), random_(spec.seed) {}

  bool put(RequestId id, const kv::Image& image, const Owner& owner, double price_seconds) override;
  bool fetch(RequestId id) override;
  void forget(RequestId id) override { kept_.erase(id); }
  void reap(std::vector<kv::Spilled>& out) override;  // A tick.

  // From now on nothing fails.
  void calm() { spec_.fault_percent = 0; }

 private:
  struct Kept {
    kv::Image image;  // Given back once it is out.
    std::vector<std::vector<std::byte>> pieces;
    std::int64_t ticks_left = 0;
    bool is_out = false, is_moving = true, fails = false;
  };

  void begin(Kept& kept);

  SpillSpec spec_;
  Random random_;
  std::map<RequestId, Kept> kept_;
};

}  // namespace fermata::sim
