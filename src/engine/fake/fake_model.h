// A deterministic, strict engine for tests and the simulator: the next token of a sequence is a
// hash over the (token, position) content of its own cells, so a lost, doubled or misplaced cell
// changes every later token; as on real machines, the shape of the computation can too. It can run
// short of cells, be told to fail, and take time on a fake clock.
#pragma once

#include "base/clock.h"
#include "engine/model.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace fermata::engine::fake {

// What work costs on the fake clock. A step: base + rows x per_row + cells attended x per_cell; an
// export or import: cells x per_moved_cell.
struct CostModel {
  Micros base{0};
  Micros per_row{0};
  std::int64_t per_cell_ns = 0;
  // Of rows in groups of several, which a machine computes faster than single ones; none: per_row.
  std::optional<Micros> per_prompt_row = {};
  std::int64_t per_moved_cell_ns = 0;
};

// Chances in percent, drawn from the seed.
struct Faults {
  int no_room_percent = 0;  // Of every step.
  int broken_percent = 0;   // Of every step.
  int move_percent = 0;     // Of every export and import: it ends in no_room.
};

struct FakeModelSpec {
  MemoryKind kind = MemoryKind::attention;
  std::uint64_t seed = 1;      // Another seed is a model with other weights.
  std::int32_t eos_every = 0;  // One in so many tokens ends the reply; 0: none.
  Tokens trained_window{4096};
  Tokens sliding_window{16};  // With MemoryKind::sliding_window.
  // The next token depends also on the shapes that the cells were computed in: how many rows a
  // group had, and how many groups were computed together.
  bool shape_matters = false;
  CostModel cost;
  Faults faults;
  FakeClock* clock = nullptr;  // Advanced by the cost of all work; may be null.
};

// REQUIRES: spec.clock outlives the engines.
std::unique_ptr<Model> make_model(const FakeModelSpec& spec);

}  // namespace fermata::engine::fake
