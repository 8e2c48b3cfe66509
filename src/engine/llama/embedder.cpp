#include "engine/llama/embedder.h"

#include "base/check.h"
#include "base/log.h"
#include "engine/llama/log_sink.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

namespace fermata::engine::llama {
namespace {

constexpr std::int32_t texts_max = 16;  // Of one call.

enum llama_pooling_type library_pooling(std::optional<Pooling> pooling) {
  if (!pooling) return LLAMA_POOLING_TYPE_UNSPECIFIED;
  switch (*pooling) {
    case Pooling::none:
      return LLAMA_POOLING_TYPE_NONE;
    case Pooling::mean:
      return LLAMA_POOLING_TYPE_MEAN;
    case Pooling::cls:
      return LLAMA_POOLING_TYPE_CLS;
    case Pooling::last:
      return LLAMA_POOLING_TYPE_LAST;
  }
  return LLAMA_POOLING_TYPE_UNSPECIFIED;
}

// The model's own where nobody chose. None: one that this server does not know.
std::optional<Pooling> pooling_of(const llama_context* context) {
  switch (llama_pooling_type(context)) {
    case LLAMA_POOLING_TYPE_UNSPECIFIED:
    case LLAMA_POOLING_TYPE_NONE:
      return Pooling::none;
    case LLAMA_POOLING_TYPE_MEAN:
      return Pooling::mean;
    case LLAMA_POOLING_TYPE_CLS:
      return Pooling::cls;
    case LLAMA_POOLING_TYPE_LAST:
      return Pooling::last;
    case LLAMA_POOLING_TYPE_RANK:
      break;
  }
  return std::nullopt;
}

Tokens trained_window_of(const LlamaModel& model) {
  return std::max(model.info().trained_window, Tokens(1));
}

Tokens rows_of(const LlamaModel& model, const EngineOptions& options) {
  return std::max(std::min(options.n_ubatch, trained_window_of(model)), Tokens(texts_max));
}

// Where only the last row counts a text may be computed in parts.
Tokens window_of(const LlamaModel& model, std::optional<Pooling> pooling,
                 const EngineOptions& options) {
  const Tokens rows = rows_of(model, options);
  return pooling == Pooling::last ? std::max(trained_window_of(model), rows) : rows;
}

}  // namespace

LlamaEmbedder::LlamaEmbedder(LlamaModel& model, std::optional<Pooling> asked,
                             const EngineOptions& options, Parts parts,
                             const EmbedderLimits& limits)
    : model_(model),
      asked_(asked),
      options_(options),
      parts_(std::move(parts)),
      pooling_(pooling_of(parts_->context.get()).value_or(Pooling::none)),
      limits_(limits),
      batch_(static_cast<std::int32_t>(limits.together.value)) {}

Result<LlamaEmbedder::Parts, BuildFault> LlamaEmbedder::make_parts(LlamaModel& model,
                                                                   std::optional<Pooling> pooling,
                                                                   const EngineOptions& options) {
  if (auto awake = model.wake(); !awake) return Err{awake.error()};
  const Tokens rows = rows_of(model, options);
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(window_of(model, pooling, options).value);
  params.n_batch = params.n_ubatch = static_cast<std::uint32_t>(rows.value);
  params.n_seq_max = texts_max;
  params.kv_unified = true;
  params.embeddings = true;
  params.pooling_type = library_pooling(pooling);
  params.flash_attn_type =
      options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_AUTO : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.offload_kqv = options.offload_kv;
  params.no_perf = true;
  EngineOptions quiet = options;
  quiet.poll = 0;  // It would spin beside the engine's threads.
  const LibraryErrors errors;
  try {
    Parts parts{Threadpools::make(quiet), nullptr};
    parts.context.reset(llama_init_from_model(model.handle(), params));
    if (!parts.context) {
      return Err{BuildFault{"no context for embeddings can be made: " +
                            errors.reason("the library gives no reason")}};
    }
    parts.pools.attach(parts.context.get());
    return parts;
  } catch (const std::exception& e) {
    return Err{BuildFault{std::string("no context for embeddings can be made: ") + e.what()}};
  }
}

Result<std::unique_ptr<Embedder>, BuildFault> LlamaEmbedder::make(LlamaModel& model,
                                                                  std::optional<Pooling> pooling,
                                                                  const EngineOptions& options) {
  auto parts = make_parts(model, pooling, options);
  if (!parts) return Err{parts.error()};
  const llama_context* const context = parts->context.get();
  if (!pooling_of(context)) {
    return Err{BuildFault{
        "the model ranks texts, which is not supported yet: give --pooling, or another model"}};
  }
  const EmbedderLimits limits{
      // The library rounds up.
      .text = std::min(window_of(model, pooling, options), trained_window_of(model)),
      .together = rows_of(model, options),
      .texts = texts_max,
      .width = llama_model_n_embd_out(model.handle())};
  return std::unique_ptr<Embedder>(
      new LlamaEmbedder(model, pooling, options, std::move(parts).value(), limits));
}

void LlamaEmbedder::sleep() { parts_.reset(); }

bool LlamaEmbedder::wake() {
  if (parts_) return true;
  auto parts = make_parts(model_, asked_, options_);
  if (!parts) {
    log_error("{}", parts.error().message);
    return false;
  }
  parts_ = std::move(parts).value();
  return true;
}

void LlamaEmbedder::clear() {
  if (llama_memory_t memory = llama_get_memory(parts_->context.get()))
    llama_memory_clear(memory, false);
}

bool LlamaEmbedder::compute(std::span<const std::span<const TokenId>> texts, std::size_t begin,
                            std::size_t end) {
  batch_.clear();
  for (std::size_t t = 0; t < texts.size(); ++t) {
    for (std::size_t i = begin; i < std::min(end, texts[t].size()); ++i) {
      batch_.add(texts[t][i], Tokens(static_cast<std::int64_t>(i)), static_cast<llama_seq_id>(t),
                 true);
    }
  }
  const LibraryErrors errors(LibraryErrors::Echo::nothing);
  try {
    const std::int32_t code = llama_decode(parts_->context.get(), batch_.get());
    if (code == 0) return true;
    log_error("libllama failed to embed with code {}: {}", code, errors.reason("no reason given"));
  } catch (const std::exception& e) {
    log_error("libllama failed to embed: {}", e.what());
  }
  return false;
}

bool LlamaEmbedder::read(std::span<const std::span<const TokenId>> texts,
                         std::vector<TextVectors>& out) const {
  out.clear();
  std::int32_t row = 0;
  for (std::size_t t = 0; t < texts.size(); ++t) {
    TextVectors& of = out.emplace_back();
    const std::size_t n = pooling_ == Pooling::none ? texts[t].size() : 1;
    for (std::size_t i = 0; i < n; ++i) {
      const float* vector =
          pooling_ == Pooling::none
              ? llama_get_embeddings_ith(parts_->context.get(), row++)
              : llama_get_embeddings_seq(parts_->context.get(), static_cast<llama_seq_id>(t));
      if (vector == nullptr) return false;
      of.emplace_back(vector, vector + limits_.width);
      const auto is_number = [](float value) { return std::isfinite(value); };
      if (!std::all_of(of.back().begin(), of.back().end(), is_number)) return false;
    }
  }
  return true;
}

EmbedOutcome LlamaEmbedder::embed(std::span<const std::span<const TokenId>> texts,
                                  const std::atomic<bool>& cancelled,
                                  std::vector<TextVectors>& out) {
  FERMATA_CHECK(!texts.empty() && texts.size() <= texts_max, "no texts, or too many");
  const auto rows = static_cast<std::size_t>(limits_.together.value);
  std::size_t longest = 0, all = 0;
  for (const auto& text : texts) {
    FERMATA_CHECK(!text.empty() && Tokens(static_cast<std::int64_t>(text.size())) <= limits_.text,
                  "a text without tokens, or too many of them");
    longest = std::max(longest, text.size());
    all += text.size();
  }
  FERMATA_CHECK(texts.size() == 1 || all <= rows, "more texts than fit together");
  if (!wake()) return EmbedOutcome::failed;
  EmbedOutcome outcome = EmbedOutcome::done;
  for (std::size_t begin = 0; begin < longest && outcome == EmbedOutcome::done; begin += rows) {
    if (cancelled.load(std::memory_order_acquire)) {
      outcome = EmbedOutcome::cancelled;
    } else if (!compute(texts, begin, begin + rows)) {
      outcome = EmbedOutcome::failed;
    }
  }
  if (outcome == EmbedOutcome::done && !read(texts, out)) outcome = EmbedOutcome::failed;
  clear();
  return outcome;
}

}  // namespace fermata::engine::llama
