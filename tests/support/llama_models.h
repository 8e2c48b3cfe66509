// Models for tests that link the real engine: the tiny chat model of the tree, and random ones of
// every kind of memory, written once per process.
#pragma once

#include "base/random.h"
#include "engine/llama/backend.h"
#include "engine/llama/random_model.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace fermata::testing {

inline std::string tiny_model_path() { return FERMATA_SOURCE_DIR "/models/fermata-tiny.gguf"; }

// Models, and anything else a test writes; removed at exit.
class ModelFolder {
 public:
  static ModelFolder& instance() {
    static ModelFolder folder;
    return folder;
  }
  ~ModelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

  std::string random_model(engine::llama::RandomModelKind kind, std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    std::string& path = written_[{static_cast<int>(kind), seed}];
    if (!path.empty()) return path;
    const auto spec = engine::llama::tiny_random_model(kind, tiny_model_path(), seed);
    const std::string name =
        std::to_string(static_cast<int>(kind)) + "-" + std::to_string(seed) + ".gguf";
    const auto made = engine::llama::write_random_model(spec, file(name));
    EXPECT_TRUE(made.ok()) << made.error();
    return path = file(name);
  }

 private:
  ModelFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("fermata-models-" + random_alphanumeric(12))) {
    std::filesystem::create_directory(path_);
  }

  std::filesystem::path path_;
  std::mutex mutex_;
  std::map<std::pair<int, std::uint64_t>, std::string> written_;
};

// Loaded once per process; the first call starts the library.
inline std::shared_ptr<engine::Model> load_test_model(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<engine::Model>> loaded;
  const std::lock_guard lock(mutex);
  std::shared_ptr<engine::Model>& model = loaded[path];
  if (model) return model;
  const auto started = engine::llama::start_library();
  EXPECT_TRUE(started.ok()) << started.error();
  auto result = engine::llama::load_model(path);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return model = std::move(result).value();
}

inline std::shared_ptr<engine::Vocabulary> tiny_vocabulary() {
  static const std::shared_ptr<engine::Vocabulary> vocabulary = [] {
    const auto started = engine::llama::start_library();
    EXPECT_TRUE(started.ok()) << started.error();
    auto result = engine::llama::load_vocabulary(tiny_model_path());
    EXPECT_TRUE(result.ok()) << result.error().message;
    return std::shared_ptr<engine::Vocabulary>(std::move(result).value());
  }();
  return vocabulary;
}

}  // namespace fermata::testing
