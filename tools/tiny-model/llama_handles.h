#pragma once
// Owners of libllama's objects, and the loading that both check programs share.

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include <llama.h>

namespace tiny_model {

struct ModelDeleter {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct ContextDeleter {
  void operator()(llama_context* context) const { llama_free(context); }
};

using Model = std::unique_ptr<llama_model, ModelDeleter>;
using Context = std::unique_ptr<llama_context, ContextDeleter>;

// Lets only warnings and errors of libllama through, to standard error.
inline void silence_progress() {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
      },
      nullptr);
}

// Throws std::runtime_error when the file cannot be loaded.
inline Model load_model(const std::string& path, bool vocabulary_only) {
  llama_model_params parameters = llama_model_default_params();
  parameters.vocab_only = vocabulary_only;
  Model model(llama_model_load_from_file(path.c_str(), parameters));
  if (model == nullptr) throw std::runtime_error(path + ": libllama cannot load this model");
  return model;
}

}  // namespace tiny_model
