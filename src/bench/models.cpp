#include "bench/models.h"

#include "bench/report.h"
#include "engine/llama/backend.h"
#include "engine/llama/random_model.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace fermata::bench {
namespace {

namespace fs = std::filesystem;

fs::path cache_folder() {
  if (const char* own = std::getenv("FERMATA_CACHE")) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME")) return fs::path(xdg) / "fermata";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : "/tmp") / ".cache" / "fermata";
}

}  // namespace

Result<std::string, std::string> tiny_model() {
  std::error_code error;
  fs::path path;
  if (const char* named = std::getenv("FERMATA_TINY_MODEL")) {
    path = named;
  } else {
    // The binary lies in build/KIND of the tree.
    path =
        fs::read_symlink("/proc/self/exe", error).parent_path() / "../../models/fermata-tiny.gguf";
  }
  if (!fs::exists(path, error)) {
    return Err("no default model at " + path.string() + "; name one with FERMATA_TINY_MODEL");
  }
  return fs::canonical(path, error).string();
}

Result<std::string, std::string> bench_model() {
  if (const char* named = std::getenv("FERMATA_BENCH_MODEL")) return std::string(named);
  const fs::path path = cache_folder() / "models" / "bench-350m.gguf";
  std::error_code error;
  if (fs::exists(path, error)) return path.string();
  const auto tiny = tiny_model();
  if (!tiny) return Err(tiny.error());
  fs::create_directories(path.parent_path(), error);
  progress("making " + path.string() + " (once, about 370 MB)");
  const auto made =
      engine::llama::write_random_model(engine::llama::bench_350m_model(*tiny), path.string());
  if (!made) return Err(made.error());
  return path.string();
}

Result<BenchEngine, std::string> bench_engine(const Geometry& geometry, int threads) {
  const auto path = bench_model();
  if (!path) return Err(path.error());
  auto model = engine::llama::load_model(*path);
  if (!model) return Err(model.error().message);
  engine::EngineOptions options;
  options.threads = threads;
  auto engine = (*model)->build(geometry, options);
  if (!engine) return Err(engine.error().message);
  return BenchEngine{std::move(*model), std::move(*engine)};
}

}  // namespace fermata::bench
