// park: how fast the cells of a sequence leave the pool and come back, against plain copies of as
// many bytes; and a park of a mirrored sequence against one step.
#include "base/clock.h"
#include "bench/models.h"
#include "bench/workloads.h"
#include "engine/model.h"
#include "engine/vocabulary.h"
#include "kv/pool.h"

#include <cstring>

namespace fermata::bench {
namespace {

constexpr std::int64_t prompt_tokens = 448;  // A block, and a tail of three quarters of one.
constexpr std::int32_t seats = 4;

class Rig {
 public:
  Rig(engine::Engine& engine) : engine_(engine), pool_(engine) {}

  // Seat 0 holds the whole prompt, computed. False: the library failed.
  bool compute() {
    take(0);
    for (std::int64_t i = 0; i < prompt_tokens; ++i) {
      prompt_.push_back(TokenId{static_cast<std::int32_t>(300 + i * 7 % 900)});
    }
    return step(prompt_) == engine::StepOutcome::done;
  }
  engine::StepOutcome step(std::span<const TokenId> tokens) {
    engine::RowGroup group;
    group.seat = Seat(0);
    group.first = engine_.position(Seat(0));
    group.tokens = tokens;
    engine::GroupResult result;
    const engine::StepOutcome outcome = engine_.step({&group, 1}, {&result, 1});
    if (outcome == engine::StepOutcome::done) pool_.appended(Seat(0), tokens);
    return outcome;
  }

  // All seats hold the prompt in cells of their own that lie in turns, as after decoding together.
  bool interleave() {
    std::vector<ByteBuffer> cells(static_cast<std::size_t>(prompt_tokens));
    for (std::int64_t i = 0; i < prompt_tokens; ++i) {
      ByteBuffer& cell = cells[static_cast<std::size_t>(i)];
      if (!engine_.export_range(Seat(0), Tokens(i), Tokens(i + 1), cell)) return false;
    }
    pool_.release(Seat(0), false, Micros(0));
    for (std::int32_t s = 0; s < seats; ++s) take(s);
    for (std::int64_t i = 0; i < prompt_tokens; ++i) {
      const auto index = static_cast<std::size_t>(i);
      for (std::int32_t s = 0; s < seats; ++s) {
        if (!engine_.import_range(Seat(s), cells[index])) return false;
        pool_.appended(Seat(s), std::span(prompt_).subspan(index, 1));
      }
    }
    return true;
  }

  // Out and back; bytes moved both ways per second, or 0.
  double move(std::int32_t seat) {
    const Micros began = clock_.now();
    kv::Image image = pool_.image(Seat(seat), true);
    const Bytes bytes = image.size();
    pool_.release(Seat(seat), false, Micros(0));
    take(seat);
    const Tokens restored = pool_.restore(Seat(seat), std::move(image));
    const Micros took = clock_.now() - began;
    if (restored == Tokens(0)) return 0.0;
    forget_mirror(seat);
    return 2.0 * static_cast<double>(bytes.value) * 1e6 / static_cast<double>(took.value);
  }

  // What a park of seat 0 takes when its first block is mirrored.
  double mirrored_park_us() {
    if (!pool_.mirror_next(Seat(0))) return 0.0;
    const Micros began = clock_.now();
    const kv::Image image = pool_.image(Seat(0), true);
    const Micros took = clock_.now() - began;
    return image.pieces.empty() ? 0.0 : static_cast<double>(took.value);
  }

  double step_us() {
    const std::vector<TokenId> token{TokenId{301}};
    const Micros began = clock_.now();
    if (step(token) != engine::StepOutcome::done) return 0.0;
    return static_cast<double>((clock_.now() - began).value);
  }

  // Bytes per second of a copy between two buffers that were touched before.
  double memcpy_speed() {
    const auto size = static_cast<std::size_t>(engine_.range_bytes(Tokens(prompt_tokens)).value);
    if (from_.size() != size) {
      from_ = ByteBuffer(size, std::byte{1});
      to_ = ByteBuffer(size, std::byte{2});
    }
    const Micros began = clock_.now();
    std::memcpy(to_.data(), from_.data(), size);
    const Micros took = clock_.now() - began;
    sum_ += static_cast<int>(to_[size / 2]);  // It is read, so it is copied.
    return static_cast<double>(size) * 1e6 / static_cast<double>(took.value);
  }

 private:
  void take(std::int32_t seat) { (void)pool_.take(Seat(seat), Tokens(0)); }
  // An image that is dropped takes the mirror along.
  void forget_mirror(std::int32_t seat) { (void)pool_.image(Seat(seat), false); }

  engine::Engine& engine_;
  kv::Pool pool_;
  SteadyClock clock_;
  std::vector<TokenId> prompt_;
  ByteBuffer from_, to_;
  int sum_ = 0;
};

struct Figures {
  std::vector<double> ratio, moved, copied;

  bool add(double move, double copy) {
    if (move <= 0.0 || copy <= 0.0) return false;
    ratio.push_back(move / copy);
    moved.push_back(move / 1e9);
    copied.push_back(copy / 1e9);
    return true;
  }
};

// The first pair touches the buffers and does not count.
bool measure(Rig& rig, int pairs, Figures& figures) {
  for (int pair = 0; pair <= pairs; ++pair) {
    const double move = rig.move(0);
    const double copy = rig.memcpy_speed();
    if (pair > 0 && !figures.add(move, copy)) return false;
  }
  return true;
}

}  // namespace

Result<Json, std::string> run_park(const BenchOptions& options) {
  const auto made = bench_engine({.n_ctx = Tokens(2048), .n_parallel = seats}, options.threads);
  if (!made) return Err(made.error());
  const std::string failed = "the library could not compute or move the cells";

  Rig rig(*made->engine);
  progress("park: computing " + std::to_string(prompt_tokens) + " tokens");
  if (!rig.compute()) return Err(failed);
  const int pairs = std::max(options.pairs, 5) * 4;  // They take milliseconds.
  Figures alone, interleaved;
  std::vector<double> parks, steps;
  if (!measure(rig, pairs, alone)) return Err(failed);
  for (int pair = 0; pair < std::max(options.pairs, 5); ++pair) {
    parks.push_back(rig.mirrored_park_us());
    steps.push_back(rig.step_us());
    if (parks.back() <= 0.0 || steps.back() <= 0.0) return Err(failed);
  }
  progress("park: interleaving four sequences");
  if (!rig.interleave() || !measure(rig, pairs, interleaved)) return Err(failed);
  return Json{{"workload", "park"},
              {"ratio", median(alone.ratio)},
              {"ratio_of", "park + resume bytes/s over memcpy bytes/s, one sequence alone"},
              {"ratio_interleaved", median(interleaved.ratio)},
              {"mirrored_park_steps", median(parks) / median(steps)},
              {"park_resume_gb_per_s", median(alone.moved)},
              {"interleaved_gb_per_s", median(interleaved.moved)},
              {"memcpy_gb_per_s", median(alone.copied)},
              {"mirrored_park_ms", median(parks) / 1000.0},
              {"step_ms", median(steps) / 1000.0},
              {"tokens", prompt_tokens},
              {"threads", options.threads},
              {"pairs", pairs}};
}

}  // namespace fermata::bench
