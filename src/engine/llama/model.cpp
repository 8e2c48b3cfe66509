#include "engine/llama/model.h"

#include "base/check.h"
#include "engine/llama/context.h"
#include "engine/llama/embedder.h"
#include "engine/llama/engine.h"
#include "engine/llama/log_sink.h"

#include <array>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace fermata::engine::llama {
namespace {

llama_load_mode library_mode(LoadMode mode) {
  switch (mode) {
    case LoadMode::automatic:
      return LLAMA_LOAD_MODE_AUTO;
    case LoadMode::none:
      return LLAMA_LOAD_MODE_NONE;
    case LoadMode::mmap:
      return LLAMA_LOAD_MODE_MMAP;
    case LoadMode::mlock:
      return LLAMA_LOAD_MODE_MLOCK;
    case LoadMode::mmap_mlock:
      return LLAMA_LOAD_MODE_MMAP_MLOCK;
    case LoadMode::direct_io:
      return LLAMA_LOAD_MODE_DIRECT_IO;
  }
  return LLAMA_LOAD_MODE_AUTO;
}

bool report(float progress, void* to) {
  return (*static_cast<const std::function<bool(float)>*>(to))(progress);
}

bool has_gpu() {
  return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU) != nullptr ||
         ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_IGPU) != nullptr;
}

MemoryKind kind_of(const llama_model* model) {
  if (llama_model_is_recurrent(model)) return MemoryKind::recurrent;
  if (llama_model_is_hybrid(model)) return MemoryKind::hybrid;
  // Also with swa_full, whose larger window cache is recycled by the same rule.
  if (llama_model_n_swa(model) > 0) return MemoryKind::sliding_window;
  return MemoryKind::attention;
}

// Empty, or why this kind of model cannot continue a text.
std::string find_fault(const llama_model* model) {
  if (llama_model_has_encoder(model) || !llama_model_has_decoder(model)) {
    return "it is an encoder model; load a model that generates text";
  }
  if (llama_model_is_diffusion(model)) {
    return "it is a diffusion model, which is not supported; load an autoregressive one";
  }
  if (llama_vocab_n_tokens(llama_model_get_vocab(model)) < 1 ||
      llama_vocab_type(llama_model_get_vocab(model)) == LLAMA_VOCAB_TYPE_NONE) {
    return "it has no vocabulary";
  }
  return "";
}

}  // namespace

ggml_type ggml_type_of(KvType type) {
  switch (type) {
    case KvType::f32:
      return GGML_TYPE_F32;
    case KvType::f16:
      return GGML_TYPE_F16;
    case KvType::bf16:
      return GGML_TYPE_BF16;
    case KvType::q8_0:
      return GGML_TYPE_Q8_0;
    case KvType::q4_0:
      return GGML_TYPE_Q4_0;
    case KvType::q4_1:
      return GGML_TYPE_Q4_1;
    case KvType::iq4_nl:
      return GGML_TYPE_IQ4_NL;
    case KvType::q5_0:
      return GGML_TYPE_Q5_0;
    case KvType::q5_1:
      return GGML_TYPE_Q5_1;
  }
  FERMATA_CHECK(false, "a KV type without a name");
}

namespace {

// Error: one line.
Result<llama_model_ptr, std::string> load_weights(const std::string& path,
                                                  const ModelOptions& options) {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = options.gpu_layers;
  params.main_gpu = options.main_gpu;
  params.load_mode = library_mode(options.load_mode);
  params.check_tensors = options.check_tensors;
  auto progress = options.progress;
  if (!progress) progress = [](float) { return true; };
  params.progress_callback = report;
  params.progress_callback_user_data = &progress;
  const LibraryErrors errors;
  try {
    llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
    if (model) return model;
    return Err("cannot load '" + path + "': " + errors.reason("the load was stopped"));
  } catch (const std::exception& e) {
    return Err("cannot load '" + path + "': " + e.what());
  }
}

}  // namespace

LlamaModel::LlamaModel(llama_model_ptr model, std::unique_ptr<ModelFile> file,
                       const ModelOptions& options)
    : options_(options),
      model_(std::move(model)),
      file_(std::move(file)),
      on_cpu_only_(!has_gpu() || options.gpu_layers == 0) {}

Result<std::unique_ptr<Model>, LoadFault> LlamaModel::load(const std::string& path,
                                                           const ModelOptions& options) {
  auto file = ModelFile::open(path);
  if (!file) return Err{LoadFault{file.error()}};
  auto model = load_weights(path, options);
  if (!model) return Err{LoadFault{model.error()}};
  try {
    if (const std::string fault = llama::find_fault(model->get()); !fault.empty()) {
      return Err{LoadFault{"cannot serve '" + path + "': " + fault}};
    }
    std::unique_ptr<LlamaModel> loaded(
        new LlamaModel(std::move(model).value(), std::move(file).value(), options));
    loaded->describe(path);
    if (const std::string fault = loaded->learn_memory(); !fault.empty()) {
      return Err{LoadFault{"cannot compute with '" + path + "': " + fault}};
    }
    return std::unique_ptr<Model>(std::move(loaded));
  } catch (const std::exception& e) {
    return Err{LoadFault{"cannot load '" + path + "': " + e.what()}};
  }
}

Result<void, BuildFault> LlamaModel::wake() {
  const std::lock_guard lock(waking_);
  if (model_) return {};
  const auto file = ModelFile::open(info_.path);
  if (!file) return Err{BuildFault{file.error()}};
  if ((*file)->sample() != file_->sample()) {
    return Err{BuildFault{"'" + info_.path +
                          "' is another model than at the start: put that one back, or restart"}};
  }
  auto model = load_weights(info_.path, options_);
  if (!model) return Err{BuildFault{model.error()}};
  model_ = std::move(model).value();
  return {};
}

std::string LlamaModel::metadata(const std::string& key) const {
  std::array<char, 256> value{};
  const std::int32_t length =
      llama_model_meta_val_str(model_.get(), key.c_str(), value.data(), value.size());
  return length < 0 ? "" : std::string(value.data());
}

std::int64_t LlamaModel::number(const std::string& key) const {
  return std::atoll(metadata(info_.architecture + "." + key).c_str());
}

void LlamaModel::describe(const std::string& path) {
  const llama_model* model = model_.get();
  const llama_vocab* vocab = llama_model_get_vocab(model);
  std::array<char, 256> words{};
  llama_model_desc(model, words.data(), words.size());
  info_.path = path;
  info_.description = words.data();
  info_.architecture = metadata("general.architecture");
  info_.name = metadata("general.name");
  info_.file_type = llama_ftype_name(llama_model_ftype(model));
  info_.kind = kind_of(model);
  info_.trained_window = Tokens(llama_model_n_ctx_train(model));
  info_.sliding_window = Tokens(llama_model_n_swa(model));
  info_.n_vocab = llama_vocab_n_tokens(vocab);
  info_.vocab_type = llama_vocab_type(vocab);
  info_.n_embd = llama_model_n_embd(model);
  info_.n_layer = llama_model_n_layer(model);
  info_.n_params = llama_model_n_params(model);
  info_.size = Bytes(static_cast<std::int64_t>(llama_model_size(model)));
  info_.has_encoder = llama_model_has_encoder(model);
}

std::string LlamaModel::learn_memory() {
  auto state = state_of_one_token(model_.get());
  if (!state) return state.error();
  memory_.recurrent = info_.kind == MemoryKind::recurrent || info_.kind == MemoryKind::hybrid
                          ? state->partial_bytes
                          : Bytes(0);
  if (info_.kind == MemoryKind::recurrent) return "";
  const std::span<const std::byte> bytes(state->bytes);
  std::size_t at = state_header_bytes;
  const auto cells = read_cache(bytes, at);
  if (!cells) {
    // A cache of another make: its size is known, its parts are not.
    const Bytes rest = Bytes(static_cast<std::int64_t>(bytes.size())) - memory_.recurrent;
    memory_.cells.layers = {LayerWidths{rest.value / 4, rest.value / 4}};
    return "";
  }
  memory_.cells = *cells;
  if (info_.kind == MemoryKind::sliding_window) {
    if (const auto window = read_cache(bytes, at)) memory_.window = *window;
  }
  bool has_v = true;
  for (const LayerWidths& layer : cells->layers) has_v = has_v && layer.v > 0;
  memory_.is_plain_attention = info_.kind == MemoryKind::attention && at == bytes.size() && has_v;
  return "";
}

Bytes LlamaModel::bytes_per_token(KvType k, KvType v) const {
  CacheShape shape = memory_.cells;
  shape.k = ggml_type_of(k);
  shape.v = ggml_type_of(v);
  return shape.cell_bytes();
}

Fingerprint LlamaModel::fingerprint(KvType k, KvType v) const {
  const Fingerprint& content = file_->content();  // Weights and rope parameters.
  Digest digest;
  digest.add(content.data(), content.size());
  digest.add(std::string(name(k))).add(std::string(name(v)));
  digest.add(library_version()).add(LLAMA_STATE_SEQ_VERSION);
  return digest.finish();
}

Result<std::unique_ptr<Engine>, BuildFault> LlamaModel::build(const Geometry& geometry,
                                                              const EngineOptions& options) {
  if (auto awake = wake(); !awake) return Err{awake.error()};
  return build_engine(*this, geometry, options);
}

Result<std::unique_ptr<Embedder>, BuildFault> LlamaModel::build_embedder(
    std::optional<Pooling> pooling, const EngineOptions& options) {
  return LlamaEmbedder::make(*this, pooling, options);
}

Result<std::unique_ptr<Model>, LoadFault> load_model(const std::string& path,
                                                     const ModelOptions& options) {
  return LlamaModel::load(path, options);
}

}  // namespace fermata::engine::llama
