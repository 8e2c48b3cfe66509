#include "api/access.h"

#include "base/check.h"

#include <algorithm>

#include <openssl/crypto.h>
#include <openssl/evp.h>

namespace fermata::api {
namespace {

constexpr std::string_view scheme = "bearer ";

// The scheme's name is in any case.
bool is_bearer(std::string_view value) {
  return value.size() > scheme.size() &&
         std::ranges::equal(value.substr(0, scheme.size()), scheme, [](char given, char lower) {
           return given == lower || (given >= 'A' && given <= 'Z' && given - 'A' + 'a' == lower);
         });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

Access::Access(std::span<const std::string> keys) {
  for (const std::string& key : keys) owners_.push_back(digest_of(key));
}

std::optional<std::size_t> Access::find(const Inquiry& inquiry) const {
  if (owners_.empty()) return 0;
  for (const auto& [name, value] : inquiry.headers) {
    std::optional<std::size_t> found;
    if (name == "x-api-key") found = find_key(trimmed(value));
    if (name == "authorization" && is_bearer(value)) {
      found = find_key(trimmed(std::string_view(value).substr(scheme.size())));
    }
    if (found) return found;
  }
  return std::nullopt;
}

Owner Access::digest_of(std::string_view key) {
  Owner out;
  auto* const bytes = reinterpret_cast<unsigned char*>(out.data());
  const int done = EVP_Digest(key.data(), key.size(), bytes, nullptr, EVP_sha256(), nullptr);
  FERMATA_CHECK(done == 1, "OpenSSL has SHA-256");
  return out;
}

// All are compared, so that the time does not tell which.
std::optional<std::size_t> Access::find_key(std::string_view text) const {
  const Owner given = digest_of(text);
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    const Owner& owner = owners_[i];
    if (CRYPTO_memcmp(given.data(), owner.data(), owner.size()) == 0) found = i;
  }
  return found;
}

}  // namespace fermata::api
