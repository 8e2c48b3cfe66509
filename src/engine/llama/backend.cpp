#include "engine/llama/backend.h"

#include "engine/llama/log_sink.h"

#include <exception>
#include <mutex>
#include <string_view>

#include <llama.h>

namespace fermata::engine::llama {
namespace {

using Started = Result<void, std::string>;

// "0.4.0" and the library's own "0.4.0-dev" are the release; "0.4.01" and "0.5.0" are not.
bool is_our_release(std::string_view version) {
  constexpr std::string_view wanted = FERMATA_LIBLLAMA_VERSION;
  if (!version.starts_with(wanted)) return false;
  return version.size() == wanted.size() || version[wanted.size()] == '-';
}

std::string default_backend_dir() {
#ifdef FERMATA_LIBLLAMA_LIB_DIR
  return FERMATA_LIBLLAMA_LIB_DIR;
#else
  return "";
#endif
}

Started start(const std::string& backend_dir, LogLevel level) {
  if (!is_our_release(llama_version())) {
    return Err{"libllama " + library_version() + " is loaded, but this build needs " +
               FERMATA_LIBLLAMA_VERSION + "; install that release or rebuild for this one"};
  }
  route_library_log(level);
  const std::string dir = backend_dir.empty() ? default_backend_dir() : backend_dir;
  if (dir.empty()) {
    ggml_backend_load_all();
  } else {
    ggml_backend_load_all_from_path(dir.c_str());
  }
  if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) {
    return Err{"no compute backend of libllama in '" + dir +
               "'; point --backend-dir at the folder that holds libggml-cpu-*.so"};
  }
  llama_backend_init();
  return {};
}

std::string kind_of(enum ggml_backend_dev_type type) {
  switch (type) {
    case GGML_BACKEND_DEVICE_TYPE_CPU:
      return "cpu";
    case GGML_BACKEND_DEVICE_TYPE_GPU:
      return "gpu";
    case GGML_BACKEND_DEVICE_TYPE_IGPU:
      return "igpu";
    case GGML_BACKEND_DEVICE_TYPE_ACCEL:
      return "accelerator";
    case GGML_BACKEND_DEVICE_TYPE_META:
      return "meta";
  }
  return "unknown";
}

// "AVX2 FMA ...": what the backend reports as switched on.
std::string features_of(ggml_backend_dev_t device) {
  ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(device);
  if (reg == nullptr) return "";
  const auto get = reinterpret_cast<ggml_backend_get_features_t>(
      ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features"));
  if (get == nullptr) return "";
  std::string out;
  for (const ggml_backend_feature* f = get(reg); f != nullptr && f->name != nullptr; ++f) {
    if (std::string_view(f->value) == "0") continue;
    if (!out.empty()) out += ' ';
    out += f->name;
    if (std::string_view(f->value) != "1") out += std::string("=") + f->value;
  }
  return out;
}

}  // namespace

Result<void, std::string> start_library(const std::string& backend_dir, LogLevel level) {
  static std::once_flag once;
  static Started started;
  std::call_once(once, [&] {
    try {
      started = start(backend_dir, level);
    } catch (const std::exception& e) {
      started = Err{std::string("libllama cannot be started: ") + e.what()};
    }
  });
  return started;
}

std::string library_version() { return llama_version(); }

std::vector<BackendInfo> describe_backends() {
  std::vector<BackendInfo> out;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    std::size_t free = 0;
    std::size_t total = 0;
    ggml_backend_dev_memory(device, &free, &total);
    out.push_back(BackendInfo{
        .name = ggml_backend_dev_name(device),
        .description = ggml_backend_dev_description(device),
        .kind = kind_of(ggml_backend_dev_type(device)),
        .features = features_of(device),
        .memory_free = Bytes(static_cast<std::int64_t>(free)),
        .memory_total = Bytes(static_cast<std::int64_t>(total)),
    });
  }
  return out;
}

}  // namespace fermata::engine::llama
