// Compute threads of one engine, with our own polling and priority. The library's threads spin at
// barriers: how long is `poll`.
#pragma once

#include "engine/model.h"

#include <cstdint>

struct ggml_threadpool;
struct llama_context;

namespace fermata::engine::llama {

// Threads to use when nobody chose: one per physical core this process may run on, at least 1.
std::int32_t default_threads();

// `wanted` <= 0: the default. At most four per core (16 on small machines): the library aborts when
// a thread cannot be started.
std::int32_t sensible_threads(std::int32_t wanted);

// Owns the pools; movable. Outlives the context it is attached to.
class Threadpools {
 public:
  Threadpools() = default;
  Threadpools(Threadpools&& other) noexcept;
  Threadpools& operator=(Threadpools&& other) noexcept;
  ~Threadpools();

  // One pool for decoding, another for prompts when their thread counts differ. A backend without
  // pools of its own (no CPU backend) gets none; then the library makes a pool per graph.
  static Threadpools make(const EngineOptions& options);

  // Also sets the context's thread counts.
  void attach(llama_context* context) const;

 private:
  void release();

  ggml_threadpool* decode_ = nullptr;
  ggml_threadpool* batch_ = nullptr;  // Null: decode_ serves both.
  std::int32_t threads_ = 1;
  std::int32_t threads_batch_ = 1;
};

}  // namespace fermata::engine::llama
