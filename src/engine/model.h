// Loaded weights. Builds engines; several may exist on one model, each owned by its caller and
// destroyed before the model. Text belongs to Vocabulary, which is loaded apart and never sleeps.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "core/geometry.h"
#include "engine/embedder.h"
#include "engine/engine.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace fermata::engine {

struct ModelInfo {
  std::string path;         // As given.
  std::string description;  // Architecture, size and type, as the library words it.
  std::string architecture;
  std::string name;       // general.name, or empty.
  std::string file_type;  // "F16", "Q8_0", ...
  MemoryKind kind = MemoryKind::attention;
  Tokens trained_window;
  Tokens sliding_window;  // 0: none.
  std::int32_t n_vocab = 0;
  std::int32_t vocab_type = 0;  // The library's number, as /v1/models shows it.
  std::int32_t n_embd = 0;
  std::int32_t n_layer = 0;
  std::uint64_t n_params = 0;
  Bytes size;
  bool has_encoder = false;
};

// Whether state of one model and KV type is meaningful to another: equal or not, nothing else.
using Fingerprint = std::array<std::byte, 32>;

// How an engine computes; not part of the geometry.
struct EngineOptions {
  Tokens n_batch{2048};
  Tokens n_ubatch{512};
  std::int32_t threads = 0;        // 0: one per core.
  std::int32_t threads_batch = 0;  // 0: as `threads`.
  std::int32_t poll = 50;          // 0: threads sleep between graphs; 100: they spin.
  std::int32_t priority = 0;       // -1 low, 0 normal, 1 medium, 2 high, 3 realtime.
  bool flash_attention = true;     // false: V is transposed and ranges are slow to move.
  bool swa_full = false;
  bool offload_kv = true;
  bool perf = false;                     // The library measures itself.
  bool one_sequence_per_ubatch = false;  // Slower; then nobody's company changes its bits.
};

// Why no engine could be built; the model and other engines are as before.
struct BuildFault {
  std::string message;  // One line: what, why, mend.
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;  // Thread-safe.
  // Any thread, also while other engines of this model step.
  virtual Result<std::unique_ptr<Engine>, BuildFault> build(const Geometry& geometry,
                                                            const EngineOptions& options) = 0;
  // Pooling: none chosen is the model's own. Any thread. Destroyed before the model.
  virtual Result<std::unique_ptr<Embedder>, BuildFault> build_embedder(
      std::optional<Pooling> pooling, const EngineOptions& options) = 0;
  // Gives the weights back until the next engine or embedder is built, which may fail then, as when
  // the file has changed. What was known of them stays known. REQUIRES: no engine is there, and no
  // embedder but sleeping ones. Not beside build().
  virtual void sleep() = 0;
  // KV bytes of one token over all layers that keep one cell a token. Thread-safe.
  virtual Bytes bytes_per_token(KvType k, KvType v) const = 0;
  // Of weights, KV types, position scheme and the library's state version. Reads the whole model
  // file at the first call (then kept): call it on a worker. Thread-safe.
  virtual Fingerprint fingerprint(KvType k, KvType v) const = 0;
};

}  // namespace fermata::engine
