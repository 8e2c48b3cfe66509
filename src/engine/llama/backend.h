// The front of libllama: starting it, and loading the two halves of a model file. Everything else
// that knows the library stays inside this folder.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/types.h"
#include "engine/model.h"
#include "engine/vocabulary.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fermata::engine::llama {

// Checks the library's release, loads its compute backends from `backend_dir` (empty: the folder
// the build was made for) and sends its log to ours: lines at `level` and above, progress dots and
// debug lines never. The first call counts, later ones answer the same. Thread-safe.
// Error: one line that says what and the mend; nothing else in this folder may be used then.
[[nodiscard]] Result<void, std::string> start_library(const std::string& backend_dir = "",
                                                      LogLevel level = LogLevel::warn);

// The release that is loaded, as the library words it ("0.4.0-dev").
std::string library_version();

// One device that can compute, for `doctor` and --list-devices.
struct BackendInfo {
  std::string name;         // "CPU", "CUDA0": what --device takes.
  std::string description;  // "NVIDIA GeForce ...".
  std::string kind;         // "cpu", "gpu", "igpu", "accelerator".
  std::string features;     // Instruction sets of the CPU backend; else empty.
  Bytes memory_free;
  Bytes memory_total;
};
// REQUIRES: start_library() was ok.
std::vector<BackendInfo> describe_backends();

// Why a model file was not loaded: one line, what, why, mend.
struct LoadFault {
  std::string message;
};

// How weights come into memory; names are llama-server's.
enum class LoadMode : std::uint8_t { automatic, none, mmap, mlock, mmap_mlock, direct_io };

struct ModelOptions {
  std::int32_t gpu_layers = -1;  // Layers on the GPU; -1: as many as there are.
  std::int32_t main_gpu = 0;
  LoadMode load_mode = LoadMode::automatic;
  bool check_tensors = false;  // Look for invalid numbers in the weights: slow.
  // Called on the loading thread with 0 to 1; false ends the load with a fault.
  std::function<bool(float)> progress;
};

// The text half of a model: no weights, a few milliseconds. A model without a chat template gets
// the library's ChatML; `chat_template_override` replaces either.
// REQUIRES: start_library() was ok. Any thread.
Result<std::unique_ptr<Vocabulary>, LoadFault> load_vocabulary(
    const std::string& path, const std::string& chat_template_override = "");

// The weights. Encoder and diffusion models are refused: they have no text to continue.
// Computes one token, so that a model that cannot work is found here and not by a client.
// REQUIRES: start_library() was ok. Any thread.
Result<std::unique_ptr<Model>, LoadFault> load_model(const std::string& path,
                                                     const ModelOptions& options = {});

}  // namespace fermata::engine::llama
