// Loaded weights, and what an engine needs to know about them.
#pragma once

#include "base/result.h"
#include "engine/llama/backend.h"
#include "engine/llama/model_file.h"
#include "engine/llama/state_format.h"
#include "engine/model.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <llama-cpp.h>

namespace fermata::engine::llama {

ggml_type ggml_type_of(KvType type);

// What a model leaves in memory, learned from one token at load.
struct MemoryShape {
  // Layers with a cell for every token: all of them (attention), those without a window (sliding
  // window), the attention layers (hybrid), none (recurrent).
  CacheShape cells;
  CacheShape window;                // Layers that keep the last tokens only.
  Bytes recurrent;                  // State of one sequence, whatever its length.
  bool is_plain_attention = false;  // One cache with K and V in every layer: ranges are possible.
};

class LlamaModel final : public Model {
 public:
  static Result<std::unique_ptr<Model>, LoadFault> load(const std::string& path,
                                                        const ModelOptions& options);

  const ModelInfo& info() const override { return info_; }
  Result<std::unique_ptr<Engine>, BuildFault> build(const Geometry& geometry,
                                                    const EngineOptions& options) override;
  Result<std::unique_ptr<Embedder>, BuildFault> build_embedder(
      std::optional<Pooling> pooling, const EngineOptions& options) override;
  void sleep() override { model_.reset(); }
  Bytes bytes_per_token(KvType k, KvType v) const override;
  Fingerprint fingerprint(KvType k, KvType v) const override;

  // Loads the weights if they sleep. Any thread, but not beside sleep().
  Result<void, BuildFault> wake();
  // None: it sleeps.
  llama_model* handle() const { return model_.get(); }
  const MemoryShape& memory() const { return memory_; }
  // Of the model but not of its KV types; from samples of the file.
  const Fingerprint& identity() const { return file_->sample(); }
  bool on_cpu_only() const { return on_cpu_only_; }
  // The value of a metadata key ("llama.context_length"), or empty.
  std::string metadata(const std::string& key) const;
  // The same for a key of its architecture ("context_length"), as a number; 0 when absent.
  std::int64_t number(const std::string& key) const;

 private:
  LlamaModel(llama_model_ptr model, std::unique_ptr<ModelFile> file, const ModelOptions& options);
  void describe(const std::string& path);
  // Empty, or why no token could be computed.
  std::string learn_memory();

  const ModelOptions options_;  // How it is loaded again.
  std::mutex waking_;
  llama_model_ptr model_;
  std::unique_ptr<ModelFile> file_;
  bool on_cpu_only_;
  ModelInfo info_;
  MemoryShape memory_;
};

}  // namespace fermata::engine::llama
