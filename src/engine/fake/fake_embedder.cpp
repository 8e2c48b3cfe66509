#include "engine/fake/fake_embedder.h"

#include "base/check.h"
#include "base/random.h"

#include <utility>

namespace fermata::engine::fake {
namespace {

constexpr std::int32_t width = 4;

Vector vector_of(std::uint64_t hash) {
  Vector out;
  for (std::int32_t i = 0; i < width; ++i) {
    hash = mix64(hash);
    out.push_back(static_cast<float>(hash % 1000) / 500.0F - 1.0F);
  }
  return out;
}

}  // namespace

FakeEmbedder::FakeEmbedder(const FakeModelSpec& spec, Pooling pooling, const EngineOptions& options)
    : spec_(spec),
      pooling_(pooling),
      limits_{.text = pooling == Pooling::last ? spec.trained_window : options.n_ubatch,
              .together = options.n_ubatch,
              .texts = 4,
              .width = width} {}

EmbedOutcome FakeEmbedder::embed(std::span<const std::span<const TokenId>> texts,
                                 const std::atomic<bool>& cancelled,
                                 std::vector<TextVectors>& out) {
  FERMATA_CHECK(!texts.empty() && texts.size() <= static_cast<std::size_t>(limits_.texts),
                "no texts, or too many");
  ++calls_;
  if (std::exchange(fails_next_, false)) return EmbedOutcome::failed;
  if (cancelled.load()) return EmbedOutcome::cancelled;
  out.clear();
  Tokens all{0};
  for (const auto& text : texts) {
    const Tokens length{static_cast<std::int64_t>(text.size())};
    FERMATA_CHECK(length > Tokens(0) && length <= limits_.text, "a text of another length");
    all += length;
    TextVectors& of = out.emplace_back();
    std::uint64_t hash = spec_.seed;
    for (const TokenId token : text) {
      hash = mix64(hash ^ static_cast<std::uint64_t>(raw(token)));
      if (pooling_ == Pooling::none) of.push_back(vector_of(hash));
    }
    if (pooling_ != Pooling::none) of.push_back(vector_of(hash));
  }
  FERMATA_CHECK(texts.size() == 1 || all <= limits_.together, "more texts than fit together");
  if (spec_.clock != nullptr)
    spec_.clock->advance(spec_.cost.base + spec_.cost.per_row * all.value);
  return EmbedOutcome::done;
}

}  // namespace fermata::engine::fake
