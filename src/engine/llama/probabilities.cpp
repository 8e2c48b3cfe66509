#include "engine/llama/probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace fermata::engine::llama {
namespace {

float finite(double value) {
  constexpr float lowest = std::numeric_limits<float>::lowest();
  return std::isfinite(value) && value > lowest ? static_cast<float>(value) : lowest;
}

}  // namespace

bool has_nan(std::span<const float> logits) {
  // No early exit: the loop is vectorised.
  int nans = 0;
  for (const float logit : logits) nans += logit != logit ? 1 : 0;
  return nans != 0;
}

void report_log_probabilities(std::span<const float> logits, std::int32_t count, Sampled& sampled) {
  const float best = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - best);
  const double base = static_cast<double>(best) + std::log(sum);
  const auto logprob = [&](std::int32_t token) {
    return finite(static_cast<double>(logits[static_cast<std::size_t>(token)]) - base);
  };
  sampled.logprob = logprob(raw(sampled.token));

  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto wanted = std::min(order.size(), static_cast<std::size_t>(std::max(0, count)));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted), order.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      const float la = logits[static_cast<std::size_t>(a)];
                      const float lb = logits[static_cast<std::size_t>(b)];
                      return la != lb ? la > lb : a < b;
                    });
  sampled.top.clear();
  for (std::size_t i = 0; i < wanted; ++i) {
    sampled.top.push_back(TokenProbability{TokenId{order[i]}, logprob(order[i])});
  }
}

void report_candidates(const llama_token_data_array& candidates, std::int32_t count,
                       Sampled& sampled) {
  const std::span<const llama_token_data> all(candidates.data, candidates.size);
  sampled.logprob = 0.0F;
  sampled.top.clear();
  for (const llama_token_data& one : all) {
    if (one.id == raw(sampled.token)) sampled.logprob = one.p;
  }
  for (const llama_token_data& one : all) {
    if (static_cast<std::int32_t>(sampled.top.size()) >= count || !(one.p > 0.0F)) break;
    sampled.top.push_back(TokenProbability{TokenId{one.id}, one.p});
  }
}

}  // namespace fermata::engine::llama
