#include "engine/fake/fake_sampler.h"

#include "base/random.h"
#include "engine/fake/fake_vocabulary.h"

#include <algorithm>

namespace fermata::engine::fake {
namespace {

constexpr std::int32_t printable_first = 32;
constexpr std::int32_t printable_count = 95;

}  // namespace

std::optional<Sampled> FakeSampler::next(std::uint64_t content, std::int32_t eos_every) {
  if (options_.dead_end) return std::nullopt;
  std::uint64_t draw = content;
  if (!options_.greedy) draw = mix64(draw ^ mix64(options_.seed + accepted_));
  Sampled sampled;
  if (options_.forced) {
    const std::string& text = *options_.forced;
    sampled.token =
        accepted_ < text.size() ? TokenId{static_cast<unsigned char>(text[accepted_])} : eos_token;
  } else if (eos_every > 0 && !options_.ignore_eos &&
             mix64(draw) % static_cast<std::uint64_t>(eos_every) == 0) {
    sampled.token = eos_token;
  } else {
    sampled.token = TokenId{printable_first + static_cast<std::int32_t>(draw % printable_count)};
  }
  ++accepted_;
  if (options_.n_probs > 0) {
    sampled.logprob = -0.5F;
    const std::int32_t n = std::min(options_.n_probs, n_vocab);
    for (std::int32_t i = 0; i < n; ++i) {
      const TokenId token{(raw(sampled.token) + i) % n_vocab};
      sampled.top.push_back({token, -0.5F - static_cast<float>(i)});
    }
  }
  return sampled;
}

}  // namespace fermata::engine::fake
