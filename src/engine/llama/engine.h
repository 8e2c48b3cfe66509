// One context of libllama. See engine/engine.h for the contract.
#pragma once

#include "base/crew.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/llama/model.h"
#include "engine/llama/range_codec.h"
#include "engine/llama/sampler.h"
#include "engine/llama/threadpool.h"
#include "engine/model.h"

#include <memory>
#include <span>
#include <vector>

#include <llama-cpp.h>

namespace fermata::engine::llama {

Result<std::unique_ptr<Engine>, BuildFault> build_engine(const LlamaModel& model,
                                                         const Geometry& geometry,
                                                         const EngineOptions& options);

// Rows of one call of the library, in buffers made once. Each row belongs to one sequence.
class Batch {
 public:
  explicit Batch(std::int32_t rows_max);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void clear() { batch_.n_tokens = 0; }
  std::int32_t rows() const { return batch_.n_tokens; }
  // REQUIRES: rows() < rows_max.
  void add(TokenId token, Tokens position, llama_seq_id sequence, bool output);
  const llama_batch& get() const { return batch_; }

 private:
  llama_batch batch_;
};

class LlamaEngine final : public Engine {
 public:
  LlamaEngine(const LlamaModel& model, Threadpools pools, llama_context_ptr context,
              const Geometry& geometry, const EngineOptions& options);
  ~LlamaEngine() override;

  MemoryKind memory_kind() const override { return kind_; }
  const Geometry& geometry() const override { return geometry_; }
  const EngineLimits& limits() const override { return limits_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  StepOutcome step(std::span<const RowGroup> groups, std::span<GroupResult> results) override;
  Tokens position(Seat seat) const override;
  Tokens truncatable(Seat seat, Tokens want) const override;
  EditOutcome truncate(Seat seat, Tokens keep) override;
  EditOutcome share_prefix(Seat from, Seat to, Tokens n) override;
  void clear(Seat seat) override;
  ShiftOutcome shift(Seat seat, Tokens keep, Tokens discard) override;
  Bytes range_bytes(Tokens n) const override;
  Result<void, MoveFault> export_range(Seat seat, Tokens begin, Tokens end,
                                       ByteBuffer& into) override;
  Result<void, MoveFault> import_range(Seat seat, std::span<const std::byte> bytes) override;
  std::shared_ptr<const RangeCheck> range_check() const override { return ranges_; }
  Result<void, MoveFault> export_sequence(Seat seat, ByteBuffer& into) override;
  Result<void, MoveFault> import_sequence(Seat seat, std::span<const std::byte> bytes) override;
  Result<void, MoveFault> export_state(Seat seat, ByteBuffer& into) override;
  bool is_state(Tokens tokens, std::span<const std::byte> state) const override;
  Result<void, MoveFault> import_state(Seat seat, Tokens tokens,
                                       std::span<const std::byte> state) override;

 private:
  bool export_cells(Seat seat, Tokens begin, Tokens end, std::span<std::byte> into);
  bool import_cells(Seat seat, Tokens begin, Tokens end, std::span<const std::byte> state);
  // The part of a group that is in the running call.
  struct Slice {
    std::size_t group;
    Tokens count;
    std::int32_t last_row;  // Of the batch.
  };
  struct Sampling {
    LlamaSampler* sampler;
    std::size_t group;
    std::int32_t row;
  };
  enum class CallOutcome : std::uint8_t { done, no_room, aborted, broken };

  void check_step(std::span<const RowGroup> groups, std::span<GroupResult> results) const;
  // Fills the batch with what is not computed yet; false when nothing is left.
  bool fill(std::span<const RowGroup> groups, std::span<const GroupResult> results);
  CallOutcome call_library();
  void account(std::span<const RowGroup> groups, std::span<GroupResult> results,
               CallOutcome outcome);
  void sample(std::span<const RowGroup> groups, std::span<GroupResult> results);
  static bool should_abort(void* engine);

  llama_seq_id sequence(Seat seat) const;
  llama_memory_t memory() const { return llama_get_memory(context_.get()); }
  void learn_range_format(const LlamaModel& model);

  const MemoryKind kind_;
  const Tokens sliding_window_;
  const std::int32_t n_vocab_;
  Geometry geometry_;
  EngineLimits limits_;
  Capabilities capabilities_{};
  // Pools outlive the context that computes on them.
  Threadpools pools_;
  llama_context_ptr context_;
  llama_seq_id first_seat_ = 0;  // 1 where sequence 0 is scratch: then a state's bytes do not
                                 // depend on the number of seats.
  std::shared_ptr<const RangeCodec> ranges_;  // Null: they do not move.
  std::uint64_t snapshot_mark_;  // In every exported sequence: an engine alike wrote it.
  Batch batch_;
  std::vector<Slice> slices_;                         // Of the running call.
  std::vector<const std::atomic<bool>*> cancelling_;  // Of the running call; empty: never abort.
  std::vector<Sampling> sampling_;                    // Of the call that just ran.
  Crew samplers_;
};

}  // namespace fermata::engine::llama
