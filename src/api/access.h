// API keys: who may ask.
#pragma once

#include "api/exchange.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::api {

// Keeps digests of the keys, not the keys. Constant, thread-safe.
class Access {
 public:
  // Without keys everybody is admitted.
  explicit Access(std::span<const std::string> keys);

  // Whether one of its headers carries a key: "Authorization: Bearer KEY" or "X-Api-Key: KEY".
  // Takes the same time whatever the header has in common with a key.
  bool admits(const Inquiry& inquiry) const;

 private:
  using Digest = std::array<std::uint8_t, 32>;
  static Digest digest_of(std::string_view key);
  bool is_key(std::string_view text) const;

  std::vector<Digest> digests_;
};

}  // namespace fermata::api
