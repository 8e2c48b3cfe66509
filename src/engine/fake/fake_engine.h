// The engine of FakeModelSpec. Tests may look inside: shape_stamps() and cells_used() are the
// fake's own truth, to hold the ledger and exactness labels against.
#pragma once

#include "base/random.h"
#include "engine/fake/fake_model.h"

#include <bitset>
#include <vector>

namespace fermata::engine::fake {

class FakeEngine final : public Engine {
 public:
  static constexpr std::int32_t shifted_shape = 1 << 16;

  FakeEngine(const FakeModelSpec& spec, const Geometry& geometry, const EngineOptions& options);

  MemoryKind memory_kind() const override { return spec_.kind; }
  const Geometry& geometry() const override { return geometry_; }
  const EngineLimits& limits() const override { return limits_; }
  const Capabilities& capabilities() const override { return capabilities_; }

  [[nodiscard]] StepOutcome step(std::span<const RowGroup> groups,
                                 std::span<GroupResult> results) override;
  Tokens position(Seat seat) const override;
  Tokens truncatable(Seat seat, Tokens want) const override;
  [[nodiscard]] EditOutcome truncate(Seat seat, Tokens keep) override;
  [[nodiscard]] EditOutcome share_prefix(Seat from, Seat to, Tokens n) override;
  void clear(Seat seat) override;
  [[nodiscard]] ShiftOutcome shift(Seat seat, Tokens keep, Tokens discard) override;
  Bytes range_bytes(Tokens n) const override;
  [[nodiscard]] Result<void, MoveFault> export_range(Seat seat, Tokens begin, Tokens end,
                                                     ByteBuffer& into) override;
  [[nodiscard]] Result<void, MoveFault> import_range(Seat seat,
                                                     std::span<const std::byte> bytes) override;
  [[nodiscard]] Result<void, MoveFault> export_sequence(Seat seat, ByteBuffer& into) override;
  [[nodiscard]] Result<void, MoveFault> import_sequence(Seat seat,
                                                        std::span<const std::byte> bytes) override;

  // From now on: other chances than the model's.
  void set_faults(const Faults& faults) { spec_.faults = faults; }
  // The next step answers `broken`.
  void break_next_step() { break_next_step_ = true; }

  // Tokens that exports have copied so far.
  Tokens exported() const { return exported_; }
  // Cells that belong to somebody, each counted once.
  Tokens cells_used() const;
  // For each token of a seat: the number of rows of the group it was computed in, and
  // shifted_shape more for each shift.
  std::vector<std::int32_t> shape_stamps(Seat seat) const;

 private:
  struct Cell {
    TokenId token{-1};
    std::int32_t position = -1;
    std::int32_t shape = 0;
    std::int32_t company = 0;
    std::int32_t owners = 0;
  };
  struct Sequence {
    std::vector<std::int32_t> cells;  // Indices by position.
    std::int64_t window_low = 0;      // Sliding window: lowest position still present there.
  };

  Sequence& sequence(Seat seat);
  const Sequence& sequence(Seat seat) const;
  void check_groups(std::span<const RowGroup> groups) const;
  std::int64_t rows_free(Seat seat) const;
  void drop(Sequence& sequence, std::size_t keep);
  void append(Seat seat, const Cell& cell);
  // Computes the first rows of a group, all unless it is cancelled.
  Tokens compute(const RowGroup& group, std::int64_t rows_before, std::int32_t company);
  ByteBuffer bytes_of(Seat seat, Tokens begin, Tokens end) const;
  Result<void, MoveFault> append_bytes(Seat seat, std::span<const std::byte> bytes);
  std::uint64_t content(const Sequence& sequence) const;
  void sample(const RowGroup& group, GroupResult& result);
  void charge(std::int64_t rows, std::int64_t prompt_rows, std::int64_t cells_attended);
  void charge_move(std::int64_t cells);

  FakeModelSpec spec_;
  Geometry geometry_;
  EngineLimits limits_;
  Capabilities capabilities_;
  Random random_;
  bool break_next_step_ = false;
  Tokens exported_{0};
  std::vector<Cell> cells_;
  std::vector<std::int32_t> free_;
  std::vector<Sequence> sequences_;
};

}  // namespace fermata::engine::fake
