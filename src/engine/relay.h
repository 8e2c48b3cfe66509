// The engine that serves now: whoever holds a reference to the relay need not know that the engine
// behind it was replaced.
#pragma once

#include "engine/engine.h"

namespace fermata::engine {

// As thread-safe as the engine behind it.
class Relay final : public Engine {
 public:
  // The target outlives its time behind the relay.
  explicit Relay(Engine& target) : target_(&target) {}

  Engine& target() const { return *target_; }
  void point_to(Engine& target) { target_ = &target; }

  MemoryKind memory_kind() const override { return target_->memory_kind(); }
  const Geometry& geometry() const override { return target_->geometry(); }
  const EngineLimits& limits() const override { return target_->limits(); }
  const Capabilities& capabilities() const override { return target_->capabilities(); }
  StepOutcome step(std::span<const RowGroup> groups, std::span<GroupResult> results) override {
    return target_->step(groups, results);
  }
  Tokens position(Seat seat) const override { return target_->position(seat); }
  Tokens truncatable(Seat seat, Tokens want) const override {
    return target_->truncatable(seat, want);
  }
  EditOutcome truncate(Seat seat, Tokens keep) override { return target_->truncate(seat, keep); }
  EditOutcome share_prefix(Seat from, Seat to, Tokens n) override {
    return target_->share_prefix(from, to, n);
  }
  ShiftOutcome shift(Seat seat, Tokens keep, Tokens discard) override {
    return target_->shift(seat, keep, discard);
  }
  void clear(Seat seat) override { target_->clear(seat); }
  Bytes range_bytes(Tokens n) const override { return target_->range_bytes(n); }
  Result<void, MoveFault> export_range(Seat seat, Tokens begin, Tokens end,
                                       ByteBuffer& into) override {
    return target_->export_range(seat, begin, end, into);
  }
  Result<void, MoveFault> import_range(Seat seat, std::span<const std::byte> bytes) override {
    return target_->import_range(seat, bytes);
  }
  std::shared_ptr<const RangeCheck> range_check() const override { return target_->range_check(); }
  Result<void, MoveFault> export_sequence(Seat seat, ByteBuffer& into) override {
    return target_->export_sequence(seat, into);
  }
  Result<void, MoveFault> import_sequence(Seat seat, std::span<const std::byte> bytes) override {
    return target_->import_sequence(seat, bytes);
  }

  Result<void, MoveFault> export_state(Seat seat, ByteBuffer& into) override {
    return target_->export_state(seat, into);
  }
  bool is_state(Tokens tokens, std::span<const std::byte> state) const override {
    return target_->is_state(tokens, state);
  }
  Result<void, MoveFault> import_state(Seat seat, Tokens tokens,
                                       std::span<const std::byte> state) override {
    return target_->import_state(seat, tokens, state);
  }

 private:
  Engine* target_;
};

}  // namespace fermata::engine
