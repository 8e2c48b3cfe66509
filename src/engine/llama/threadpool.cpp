#include "engine/llama/threadpool.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <common.h>
#include <llama.h>

namespace fermata::engine::llama {
namespace {

// Pools live in the CPU backend, which is a plug-in: its functions are found by name.
template <class Function>
Function* cpu_function(const char* name) {
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr) return nullptr;
  return reinterpret_cast<Function*>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu), name));
}

std::int32_t allowed_cores() {
  return static_cast<std::int32_t>(std::thread::hardware_concurrency());
}

ggml_threadpool* make_pool(std::int32_t threads, const EngineOptions& options) {
  const auto make = cpu_function<decltype(ggml_threadpool_new)>("ggml_threadpool_new");
  if (make == nullptr) return nullptr;
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  params.poll = static_cast<std::uint32_t>(std::clamp(options.poll, 0, 100));
  params.prio = static_cast<ggml_sched_priority>(std::clamp(options.priority, -1, 3));
  // The thread that computes first wakes the pool and takes its priority, not the one that builds.
  params.paused = true;
  return make(&params);
}

void free_pool(ggml_threadpool* pool) {
  if (pool == nullptr) return;
  cpu_function<decltype(ggml_threadpool_free)>("ggml_threadpool_free")(pool);
}

}  // namespace

std::int32_t default_threads() {
  return std::max(1, std::min(allowed_cores(), common_cpu_get_num_math()));
}

std::int32_t sensible_threads(std::int32_t wanted) {
  const std::int32_t most = std::min(GGML_MAX_N_THREADS, std::max(16, 4 * allowed_cores()));
  return std::clamp(wanted > 0 ? wanted : default_threads(), 1, most);
}

Threadpools Threadpools::make(const EngineOptions& options) {
  Threadpools pools;
  pools.threads_ = sensible_threads(options.threads);
  pools.threads_batch_ =
      options.threads_batch > 0 ? sensible_threads(options.threads_batch) : pools.threads_;
  pools.decode_ = make_pool(pools.threads_, options);
  if (pools.decode_ != nullptr && pools.threads_batch_ != pools.threads_) {
    pools.batch_ = make_pool(pools.threads_batch_, options);
  }
  return pools;
}

void Threadpools::attach(llama_context* context) const {
  llama_set_n_threads(context, threads_, threads_batch_);
  if (decode_ != nullptr) llama_attach_threadpool(context, decode_, batch_);
}

Threadpools::Threadpools(Threadpools&& other) noexcept
    : decode_(std::exchange(other.decode_, nullptr)),
      batch_(std::exchange(other.batch_, nullptr)),
      threads_(other.threads_),
      threads_batch_(other.threads_batch_) {}

Threadpools& Threadpools::operator=(Threadpools&& other) noexcept {
  if (this == &other) return *this;
  release();
  decode_ = std::exchange(other.decode_, nullptr);
  batch_ = std::exchange(other.batch_, nullptr);
  threads_ = other.threads_;
  threads_batch_ = other.threads_batch_;
  return *this;
}

Threadpools::~Threadpools() { release(); }

void Threadpools::release() {
  free_pool(std::exchange(decode_, nullptr));
  free_pool(std::exchange(batch_, nullptr));
}

}  // namespace fermata::engine::llama
