// Vectors out of a context of libllama. See engine/embedder.h for the contract.
#pragma once

#include "base/result.h"
#include "engine/embedder.h"
#include "engine/llama/engine.h"
#include "engine/llama/model.h"
#include "engine/llama/threadpool.h"
#include "engine/model.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <llama-cpp.h>

namespace fermata::engine::llama {

class LlamaEmbedder final : public Embedder {
 public:
  static Result<std::unique_ptr<Embedder>, BuildFault> make(LlamaModel& model,
                                                            std::optional<Pooling> pooling,
                                                            const EngineOptions& options);

  Pooling pooling() const override { return pooling_; }
  const EmbedderLimits& limits() const override { return limits_; }
  void sleep() override;
  EmbedOutcome embed(std::span<const std::span<const TokenId>> texts,
                     const std::atomic<bool>& cancelled, std::vector<TextVectors>& out) override;

 private:
  // The context goes before the threads that it computes with.
  struct Parts {
    Threadpools pools;
    llama_context_ptr context;
  };
  static Result<Parts, BuildFault> make_parts(LlamaModel& model, std::optional<Pooling> pooling,
                                              const EngineOptions& options);
  LlamaEmbedder(LlamaModel& model, std::optional<Pooling> asked, const EngineOptions& options,
                Parts parts, const EmbedderLimits& limits);
  bool wake();
  // Computes rows [begin, end) of one text behind what is there, or all of several.
  bool compute(std::span<const std::span<const TokenId>> texts, std::size_t begin, std::size_t end);
  bool read(std::span<const std::span<const TokenId>> texts, std::vector<TextVectors>& out) const;
  void clear();

  LlamaModel& model_;
  const std::optional<Pooling> asked_;
  const EngineOptions options_;
  std::optional<Parts> parts_;  // None: it sleeps.
  const Pooling pooling_;
  const EmbedderLimits limits_;
  Batch batch_;
};

}  // namespace fermata::engine::llama
