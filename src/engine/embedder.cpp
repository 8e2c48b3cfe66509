#include "engine/embedder.h"

#include "base/check.h"

#include <array>

namespace fermata::engine {
namespace {

constexpr auto names = std::to_array<std::pair<Pooling, std::string_view>>({
    {Pooling::none, "none"},
    {Pooling::mean, "mean"},
    {Pooling::cls, "cls"},
    {Pooling::last, "last"},
});

}  // namespace

std::string_view name(Pooling pooling) {
  for (const auto& [value, text] : names) {
    if (value == pooling) return text;
  }
  FERMATA_CHECK(false, "a pooling without a name");
}

std::optional<Pooling> pooling_from(std::string_view name) {
  for (const auto& [value, text] : names) {
    if (text == name) return value;
  }
  return std::nullopt;
}

}  // namespace fermata::engine
