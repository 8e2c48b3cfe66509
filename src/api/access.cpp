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
  for (const std::string& key : keys) digests_.push_back(digest_of(key));
}

bool Access::admits(const Inquiry& inquiry) const {
  if (digests_.empty()) return true;
  return std::ranges::any_of(inquiry.headers, [this](const auto& line) {
    const auto& [name, value] = line;
    if (name == "x-api-key") return is_key(trimmed(value));
    if (name != "authorization" || !is_bearer(value)) return false;
    return is_key(trimmed(std::string_view(value).substr(scheme.size())));
  });
}

Access::Digest Access::digest_of(std::string_view key) {
  Digest out;
  const int done = EVP_Digest(key.data(), key.size(), out.data(), nullptr, EVP_sha256(), nullptr);
  FERMATA_CHECK(done == 1, "OpenSSL has SHA-256");
  return out;
}

bool Access::is_key(std::string_view text) const {
  const Digest given = digest_of(text);
  int found = 0;
  for (const Digest& digest : digests_) {
    found |= CRYPTO_memcmp(given.data(), digest.data(), digest.size()) == 0 ? 1 : 0;
  }
  return found != 0;
}

}  // namespace fermata::api
