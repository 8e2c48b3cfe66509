// Vectors that are hashes of their text.
#pragma once

#include "engine/embedder.h"
#include "engine/fake/fake_model.h"

namespace fermata::engine::fake {

class FakeEmbedder final : public Embedder {
 public:
  FakeEmbedder(const FakeModelSpec& spec, Pooling pooling, const EngineOptions& options);

  Pooling pooling() const override { return pooling_; }
  const EmbedderLimits& limits() const override { return limits_; }
  void sleep() override {}
  EmbedOutcome embed(std::span<const std::span<const TokenId>> texts,
                     const std::atomic<bool>& cancelled, std::vector<TextVectors>& out) override;

  // The next call fails.
  void fail_next() { fails_next_ = true; }
  int calls() const { return calls_; }

 private:
  const FakeModelSpec spec_;
  const Pooling pooling_;
  const EmbedderLimits limits_;
  bool fails_next_ = false;
  int calls_ = 0;
};

}  // namespace fermata::engine::fake
