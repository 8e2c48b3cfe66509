// The place of an engine that is not there: it holds nothing and computes nothing.
#pragma once

#include "base/check.h"
#include "engine/engine.h"

namespace fermata::engine {

class AbsentEngine final : public Engine {
 public:
  // In the place of this one.
  explicit AbsentEngine(const Engine& other)
      : kind_(other.memory_kind()),
        geometry_(other.geometry()),
        limits_(other.limits()),
        capabilities_(other.capabilities()) {}

  MemoryKind memory_kind() const override { return kind_; }
  const Geometry& geometry() const override { return geometry_; }
  const EngineLimits& limits() const override { return limits_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  // Nobody may ask for one.
  StepOutcome step(std::span<const RowGroup> /*groups*/,
                   std::span<GroupResult> /*results*/) override {
    FERMATA_CHECK(false, "a step without an engine");
    return StepOutcome::broken;
  }
  Tokens position(Seat /*seat*/) const override { return Tokens(0); }
  Tokens truncatable(Seat /*seat*/, Tokens /*want*/) const override { return Tokens(0); }
  EditOutcome truncate(Seat /*seat*/, Tokens /*keep*/) override { return EditOutcome::done; }
  EditOutcome share_prefix(Seat /*from*/, Seat /*to*/, Tokens /*n*/) override {
    return EditOutcome::unsupported;
  }
  ShiftOutcome shift(Seat /*seat*/, Tokens /*keep*/, Tokens /*discard*/) override {
    return ShiftOutcome::unsupported;
  }
  void clear(Seat /*seat*/) override {}
  Bytes range_bytes(Tokens /*n*/) const override { return Bytes(0); }
  Result<void, MoveFault> export_range(Seat /*seat*/, Tokens /*begin*/, Tokens /*end*/,
                                       ByteBuffer& /*into*/) override {
    return Err(MoveFault::unsupported);
  }
  Result<void, MoveFault> import_range(Seat /*seat*/,
                                       std::span<const std::byte> /*bytes*/) override {
    return Err(MoveFault::unsupported);
  }
  Result<void, MoveFault> export_sequence(Seat /*seat*/, ByteBuffer& /*into*/) override {
    return Err(MoveFault::unsupported);
  }
  Result<void, MoveFault> import_sequence(Seat /*seat*/,
                                          std::span<const std::byte> /*bytes*/) override {
    return Err(MoveFault::unsupported);
  }

  Result<void, MoveFault> export_state(Seat /*seat*/, ByteBuffer& /*into*/) override {
    return Err(MoveFault::unsupported);
  }
  bool is_state(Tokens /*tokens*/, std::span<const std::byte> /*state*/) const override {
    return false;
  }
  Result<void, MoveFault> import_state(Seat /*seat*/, Tokens /*tokens*/,
                                       std::span<const std::byte> /*state*/) override {
    return Err(MoveFault::unsupported);
  }

 private:
  const MemoryKind kind_;
  const Geometry geometry_;
  const EngineLimits limits_;
  const Capabilities capabilities_;
};

}  // namespace fermata::engine
