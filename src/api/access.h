// API keys: who may ask.
#pragma once

#include "api/exchange.h"
#include "core/request.h"

#include <cstddef>
#include <optional>
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

  // The owner of each key, in their order.
  const std::vector<Owner>& owners() const { return owners_; }

  // Which key one of its headers carries: "Authorization: Bearer KEY" or "X-Api-Key: KEY"; none: it
  // is not admitted. 0 where there are no keys. Takes the same time whatever the header has in
  // common with a key.
  std::optional<std::size_t> find(const Inquiry& inquiry) const;

 private:
  static Owner digest_of(std::string_view key);
  std::optional<std::size_t> find_key(std::string_view text) const;

  std::vector<Owner> owners_;
};

}  // namespace fermata::api
