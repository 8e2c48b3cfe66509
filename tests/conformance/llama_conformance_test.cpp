// The suite on libllama: random models of every kind of memory.
#include "conformance/engine_conformance.h"
#include "support/llama_models.h"

namespace fermata::engine {
namespace {

using llama::RandomModelKind;

EngineFactory factory(const std::string& name, MemoryKind kind, RandomModelKind model,
                      Layout layout) {
  return EngineFactory{
      .name = "llama_" + name + (layout == Layout::pooled ? "_pooled" : "_split"),
      .kind = kind,
      .layout = layout,
      .model =
          [model](std::uint64_t seed) {
            return fermata::testing::load_test_model(
                fermata::testing::ModelFolder::instance().random_model(model, seed));
          },
      .vocabulary = [] { return fermata::testing::tiny_vocabulary(); },
      .dead_end_grammar = R"(root ::= [^\x00-\UFFFFFFFF])",
      .shape_tolerance = 0.05F,
  };
}

std::vector<EngineFactory> factories() {
  std::vector<EngineFactory> out;
  for (const Layout layout : {Layout::pooled, Layout::split}) {
    out.push_back(factory("dense", MemoryKind::attention, RandomModelKind::dense, layout));
    out.push_back(factory("sliding_window", MemoryKind::sliding_window,
                          RandomModelKind::sliding_window, layout));
    out.push_back(factory("recurrent", MemoryKind::recurrent, RandomModelKind::recurrent, layout));
    out.push_back(factory("hybrid", MemoryKind::hybrid, RandomModelKind::hybrid, layout));
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Llama, EngineConformance, ::testing::ValuesIn(factories()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fermata::engine
