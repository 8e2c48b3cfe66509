#include "base/check.h"
#include "policy/policy.h"

#include <algorithm>
#include <array>

namespace fermata::policy {
namespace {

constexpr std::array<std::string_view, 5> names = {"smallest", "youngest", "oldest", "largest",
                                                   "cost"};

}  // namespace

std::string_view name(Victim victim) {
  const auto index = static_cast<std::size_t>(victim);
  FERMATA_CHECK(index < names.size(), "a victim that has no name");
  return names[index];
}

std::optional<Victim> victim_from(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Victim>(found - names.begin());
}

}  // namespace fermata::policy
