// When a server that nobody uses gives its memory back, and what became of it. Decides only; the
// scheduler does it.
//
//   awake ──idle──► context released ──idle for longer──► weights released
//     ▲                  │    ▲                                │
//     └──somebody waits──┘    └───somebody embeds a text───────┤
//     └────────────────────────somebody waits──────────────────┘
#pragma once

#include "base/types.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace fermata::scheduler {

enum class Depth : std::uint8_t {
  awake,
  context,  // No engine; the embedder has no memory. Conversations are in RAM and in the store.
  weights,  // And no weights.
};

struct SleepOptions {
  // Without a request for so long. None: never.
  std::optional<Micros> context;
  std::optional<Micros> weights;  // Counts from the same moment; not before the context.
};

// The scheduler thread's own.
class Sleep {
 public:
  Sleep(const SleepOptions& options, Micros now) : options_(options), since_(now) {}

  Depth depth() const { return depth_; }
  // Somebody needs something.
  void stir(Micros now) {
    since_ = now;
    depth_ = std::min(depth_, Depth::context);
  }
  // There is an engine again.
  void wake(Micros now) {
    since_ = now;
    depth_ = Depth::awake;
  }
  void reach(Depth depth) { depth_ = depth; }
  // Where it should be by now: never less deep than it is.
  Depth due(Micros now) const {
    const Micros idle = now - since_;
    const bool context = options_.context && idle >= *options_.context;
    if (context && options_.weights && idle >= *options_.weights) return Depth::weights;
    return context ? std::max(depth_, Depth::context) : depth_;
  }
  // For how long it is idle beyond what was asked for.
  Micros overdue(Micros now) const { return now - since_ - options_.context.value_or(Micros(0)); }
  // Until it has to be deeper than it is; none: never. Not negative.
  std::optional<Micros> next(Micros now) const {
    const auto& limit = depth_ == Depth::awake ? options_.context : options_.weights;
    if (!options_.context || !limit || depth_ == Depth::weights) return std::nullopt;
    return std::max(since_ + *limit - now, Micros(0));
  }

 private:
  const SleepOptions options_;
  Micros since_;
  Depth depth_ = Depth::awake;
};

}  // namespace fermata::scheduler
