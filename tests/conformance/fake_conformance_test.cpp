// The suite on the fake engine, which the scheduler's tests stand on.
#include "conformance/engine_conformance.h"
#include "engine/fake/fake_model.h"
#include "engine/fake/fake_vocabulary.h"

namespace fermata::engine {
namespace {

EngineFactory factory(const std::string& name, MemoryKind kind, Layout layout) {
  return EngineFactory{
      .name = "fake_" + name + (layout == Layout::pooled ? "_pooled" : "_split"),
      .kind = kind,
      .layout = layout,
      .model =
          [kind](std::uint64_t seed) {
            fake::FakeModelSpec spec;
            spec.kind = kind;
            spec.seed = seed;
            return std::shared_ptr<Model>(fake::make_model(spec));
          },
      .vocabulary = [] { return std::shared_ptr<Vocabulary>(fake::make_vocabulary()); },
      .dead_end_grammar = "root ::= ()",
      .shape_tolerance = 0.0F,
  };
}

std::vector<EngineFactory> factories() {
  std::vector<EngineFactory> out;
  for (const Layout layout : {Layout::pooled, Layout::split}) {
    out.push_back(factory("attention", MemoryKind::attention, layout));
    out.push_back(factory("sliding_window", MemoryKind::sliding_window, layout));
    out.push_back(factory("recurrent", MemoryKind::recurrent, layout));
    out.push_back(factory("hybrid", MemoryKind::hybrid, layout));
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Fake, EngineConformance, ::testing::ValuesIn(factories()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fermata::engine
