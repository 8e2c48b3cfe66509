// The models that workloads run on: the default one of the tree, and a random-weight one of the
// size people serve on small machines, made once and kept in the cache folder.
#pragma once

#include "base/result.h"
#include "core/geometry.h"
#include "engine/engine.h"
#include "engine/model.h"

#include <memory>
#include <string>

namespace fermata::bench {

// models/fermata-tiny.gguf of the tree this binary was built in, or FERMATA_TINY_MODEL.
Result<std::string, std::string> tiny_model();
// FERMATA_BENCH_MODEL, or one that is made at the first call; shows its progress. About 370 MB in
// ${FERMATA_CACHE:-~/.cache/fermata}.
Result<std::string, std::string> bench_model();

struct BenchEngine {
  std::unique_ptr<engine::Model> model;
  std::unique_ptr<engine::Engine> engine;  // Ends first.
};
// Of bench_model(), in this process.
Result<BenchEngine, std::string> bench_engine(const Geometry& geometry, int threads);

}  // namespace fermata::bench
