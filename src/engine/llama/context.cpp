#include "engine/llama/context.h"

#include "engine/llama/available_memory.h"
#include "engine/llama/log_sink.h"
#include "engine/llama/threadpool.h"

#include <algorithm>
#include <cstdint>
#include <exception>

namespace fermata::engine::llama {
namespace {

constexpr std::int64_t cell_step = 256;  // The library pads every cache to this.

std::int64_t padded(std::int64_t cells) { return (cells + cell_step - 1) / cell_step * cell_step; }

std::int32_t sequences(const LlamaModel& model, const Geometry& geometry) {
  return geometry.n_parallel + (has_scratch(model, geometry.layout) ? 1 : 0);
}

std::int64_t batch_rows(const LlamaModel& model, const Geometry& geometry,
                        const EngineOptions& options) {
  return std::max<std::int64_t>(options.n_batch.value, sequences(model, geometry));
}

std::int64_t ubatch_rows(const LlamaModel& model, const Geometry& geometry,
                         const EngineOptions& options) {
  return std::min(options.n_ubatch.value, batch_rows(model, geometry, options));
}

// Cells that the library will make, all streams together. Rounded here as it would do itself, so
// that every seat of the split layout gets its whole share.
std::int64_t cells_built(const Geometry& geometry) {
  if (geometry.layout == Layout::pooled) return padded(geometry.n_ctx.value);
  const std::int64_t share = (geometry.n_ctx.value + geometry.n_parallel - 1) / geometry.n_parallel;
  return padded(share) * geometry.n_parallel;
}

std::string gib(Bytes bytes) {
  const std::int64_t tenths = bytes.value / ((std::int64_t{1} << 30) / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

// 0 when the metadata does not tell.
std::int64_t head_size(const LlamaModel& model, const char* key) {
  if (const std::int64_t size = model.number(key); size > 0) return size;
  const std::int32_t heads = llama_model_n_head(model.handle());
  return heads > 0 ? model.info().n_embd / heads : 0;
}

std::string find_kv_type_fault(const LlamaModel& model, const Geometry& geometry) {
  if (model.info().kind == MemoryKind::recurrent) return "";
  const std::int64_t head_k = head_size(model, "attention.key_length");
  const std::int64_t head_v = head_size(model, "attention.value_length");
  for (CacheShape shape : {model.memory().cells, model.memory().window}) {
    shape.k = ggml_type_of(geometry.cache_type_k);
    shape.v = ggml_type_of(geometry.cache_type_v);
    if (std::string fault = find_type_fault(shape, head_k, head_v); !fault.empty()) return fault;
  }
  return "";
}

}  // namespace

bool has_scratch(const LlamaModel& model, Layout layout) {
  return layout == Layout::pooled && model.memory().is_plain_attention;
}

llama_context_params context_params(const LlamaModel& model, const Geometry& geometry,
                                    const EngineOptions& options) {
  const auto seqs = static_cast<std::uint32_t>(sequences(model, geometry));
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(cells_built(geometry));
  // The library aborts when it has less rows or outputs than sequences.
  params.n_batch = static_cast<std::uint32_t>(batch_rows(model, geometry, options));
  params.n_ubatch = static_cast<std::uint32_t>(ubatch_rows(model, geometry, options));
  params.n_seq_max = seqs;
  params.n_outputs_max = seqs;  // One row of a sequence is sampled at a time.
  params.type_k = ggml_type_of(geometry.cache_type_k);
  params.type_v = ggml_type_of(geometry.cache_type_v);
  params.flash_attn_type =
      options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_AUTO : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.offload_kqv = options.offload_kv;
  params.swa_full = options.swa_full;
  params.kv_unified = geometry.layout == Layout::pooled;
  params.no_perf = !options.perf;
  return params;
}

Bytes estimated_bytes(const LlamaModel& model, const Geometry& geometry,
                      const EngineOptions& options) {
  const MemoryShape& memory = model.memory();
  const std::int64_t cells = cells_built(geometry);
  const std::int64_t seqs = sequences(model, geometry);
  const std::int64_t rows = ubatch_rows(model, geometry, options);
  const auto typed = [&](CacheShape shape) {
    shape.k = ggml_type_of(geometry.cache_type_k);
    shape.v = ggml_type_of(geometry.cache_type_v);
    return shape.cell_bytes().value;
  };
  const bool split = geometry.layout == Layout::split;
  const std::int64_t window_one =
      padded(model.info().sliding_window.value * (split ? 1 : seqs) + rows);
  const std::int64_t window_cells =
      options.swa_full ? cells : std::min(cells, window_one * (split ? seqs : 1));
  // A cell's own record, its column in the attention mask (twice: f32 and f16) and, without flash
  // attention, in the scores of every head.
  const std::int64_t mask_rows = split ? std::max<std::int64_t>(1, rows / seqs) : rows;
  const std::int64_t heads = std::max(1, llama_model_n_head(model.handle()));
  const std::int64_t scores = options.flash_attention ? 0 : 4 * heads;
  const std::int64_t per_cell = 64 + mask_rows * (6 + scores);
  const std::int64_t work =
      rows * (std::int64_t{model.info().n_embd} * 32 + model.info().n_vocab * 4);
  const bool has_cells = model.info().kind != MemoryKind::recurrent;
  return Bytes(cells * (typed(memory.cells) + (has_cells ? per_cell : 0)) +
               window_cells * typed(memory.window) + seqs * memory.recurrent.value + work);
}

std::string find_build_fault(const LlamaModel& model, const Geometry& geometry,
                             const EngineOptions& options) {
  if (std::string fault = fermata::find_fault(geometry, options.flash_attention); !fault.empty()) {
    return fault;
  }
  if (options.n_batch < Tokens(1) || options.n_ubatch < Tokens(1) || options.n_batch > n_ctx_max ||
      options.n_ubatch > n_ctx_max) {
    return "n_batch and n_ubatch must be between 1 and " + std::to_string(n_ctx_max.value);
  }
  if (std::string fault = find_kv_type_fault(model, geometry); !fault.empty()) return fault;
  const Bytes needed = estimated_bytes(model, geometry, options);
  const auto available = available_memory();
  const bool in_ram = model.on_cpu_only() || !options.offload_kv;
  if (in_ram && available && needed > *available) {
    return "a context of " + std::to_string(geometry.n_ctx.value) + " cells needs about " +
           gib(needed) + " and " + gib(*available) +
           " are free; lower n_ctx or use a smaller cache type";
  }
  return "";
}

Result<OneTokenState, std::string> state_of_one_token(llama_model* model) {
  const LibraryErrors errors;
  Threadpools pools = Threadpools::make(EngineOptions{.poll = 0});
  llama_context_params params = llama_context_default_params();
  params.n_ctx = cell_step;
  params.n_batch = 32;
  params.n_ubatch = 32;
  params.kv_unified = true;
  params.swa_full = false;
  params.no_perf = true;
  try {
    const llama_context_ptr context(llama_init_from_model(model, params));
    if (!context) return Err{errors.reason("no context can be made")};
    pools.attach(context.get());
    const llama_vocab* vocab = llama_model_get_vocab(model);
    llama_token token = std::max(0, llama_vocab_bos(vocab));
    if (llama_decode(context.get(), llama_batch_get_one(&token, 1)) != 0) {
      return Err{errors.reason("it computes nothing")};
    }
    OneTokenState state;
    state.bytes.resize(llama_state_seq_get_size(context.get(), 0));
    const std::size_t got = llama_state_seq_get_data(
        context.get(), reinterpret_cast<std::uint8_t*>(state.bytes.data()), state.bytes.size(), 0);
    if (got != state.bytes.size() || got == 0) return Err{errors.reason("its state is unreadable")};
    state.partial_bytes = Bytes(static_cast<std::int64_t>(
        llama_state_seq_get_size_ext(context.get(), 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)));
    return state;
  } catch (const std::exception& e) {
    return Err{std::string(e.what())};
  }
}

}  // namespace fermata::engine::llama
