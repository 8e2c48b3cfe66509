// An engine that fails now and then though nothing is wrong with it, for tests of the whole server.
#pragma once

#include "base/random.h"
#include "engine/engine.h"

#include <memory>

namespace fermata::engine {

// Chances in percent.
struct InjectedFaults {
  int no_room_percent = 0;  // Of steps: nothing is computed.
  int move_percent = 0;     // Of exports and imports.
};

class FaultyEngine final : public Engine {
 public:
  FaultyEngine(std::unique_ptr<Engine> inner, const InjectedFaults& faults, std::uint64_t seed)
      : inner_(std::move(inner)), faults_(faults), random_(seed) {}

  MemoryKind memory_kind() const override { return inner_->memory_kind(); }
  const Geometry& geometry() const override { return inner_->geometry(); }
  const EngineLimits& limits() const override { return inner_->limits(); }
  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  StepOutcome step(std::span<const RowGroup> groups, std::span<GroupResult> results) override;
  Tokens position(Seat seat) const override { return inner_->position(seat); }
  Tokens truncatable(Seat seat, Tokens want) const override {
    return inner_->truncatable(seat, want);
  }
  EditOutcome truncate(Seat seat, Tokens keep) override { return inner_->truncate(seat, keep); }
  EditOutcome share_prefix(Seat from, Seat to, Tokens n) override {
    return inner_->share_prefix(from, to, n);
  }
  void clear(Seat seat) override { inner_->clear(seat); }
  ShiftOutcome shift(Seat seat, Tokens keep, Tokens discard) override {
    return inner_->shift(seat, keep, discard);
  }
  Bytes range_bytes(Tokens n) const override { return inner_->range_bytes(n); }
  std::shared_ptr<const RangeCheck> range_check() const override { return inner_->range_check(); }
  Result<void, MoveFault> export_range(Seat seat, Tokens begin, Tokens end,
                                       ByteBuffer& into) override;
  Result<void, MoveFault> import_range(Seat seat, std::span<const std::byte> bytes) override;
  Result<void, MoveFault> export_sequence(Seat seat, ByteBuffer& into) override;
  Result<void, MoveFault> import_sequence(Seat seat, std::span<const std::byte> bytes) override;
  Result<void, MoveFault> export_state(Seat seat, ByteBuffer& into) override;
  bool is_state(Tokens tokens, std::span<const std::byte> state) const override {
    return inner_->is_state(tokens, state);
  }
  Result<void, MoveFault> import_state(Seat seat, Tokens tokens,
                                       std::span<const std::byte> state) override;

 private:
  std::unique_ptr<Engine> inner_;
  InjectedFaults faults_;
  Random random_;
};

}  // namespace fermata::engine
