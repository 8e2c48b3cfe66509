#include "engine/fake/fake_model.h"

#include "base/random.h"
#include "engine/fake/fake_embedder.h"
#include "engine/fake/fake_engine.h"
#include "engine/fake/fake_vocabulary.h"

#include <cstring>

namespace fermata::engine::fake {
namespace {

constexpr std::int64_t bytes_per_cell = 24;

class FakeModel final : public Model {
 public:
  explicit FakeModel(const FakeModelSpec& spec) : spec_(spec) {
    info_.path = "fake";
    info_.description = "fake engine";
    info_.architecture = "fake";
    info_.name = "fake";
    info_.file_type = "none";
    info_.kind = spec.kind;
    info_.trained_window = spec.trained_window;
    if (spec.kind == MemoryKind::sliding_window) info_.sliding_window = spec.sliding_window;
    info_.n_vocab = n_vocab;
  }

  const ModelInfo& info() const override { return info_; }
  Result<std::unique_ptr<Engine>, BuildFault> build(const Geometry& geometry,
                                                    const EngineOptions& options) override {
    const std::string fault = find_fault(geometry, options.flash_attention);
    if (!fault.empty()) return Err(BuildFault{fault});
    return std::unique_ptr<Engine>(std::make_unique<FakeEngine>(spec_, geometry, options));
  }
  void sleep() override {}
  Result<std::unique_ptr<Embedder>, BuildFault> build_embedder(
      std::optional<Pooling> pooling, const EngineOptions& options) override {
    return std::unique_ptr<Embedder>(
        std::make_unique<FakeEmbedder>(spec_, pooling.value_or(Pooling::none), options));
  }
  Bytes bytes_per_token(KvType, KvType) const override { return Bytes(bytes_per_cell); }
  Fingerprint fingerprint(KvType k, KvType v) const override {
    Fingerprint out{};
    std::uint64_t hash = mix64(spec_.seed) ^ (static_cast<std::uint64_t>(spec_.kind) << 16) ^
                         (static_cast<std::uint64_t>(k) << 8) ^ static_cast<std::uint64_t>(v);
    for (std::size_t i = 0; i < out.size(); i += sizeof hash) {
      hash = mix64(hash);
      std::memcpy(&out[i], &hash, sizeof hash);
    }
    return out;
  }

 private:
  FakeModelSpec spec_;
  ModelInfo info_;
};

}  // namespace

std::unique_ptr<Model> make_model(const FakeModelSpec& spec) {
  return std::make_unique<FakeModel>(spec);
}

}  // namespace fermata::engine::fake
