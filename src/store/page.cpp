#include "store/page.h"

#include "base/check.h"
#include "core/pages.h"

#include <algorithm>
#include <bit>
#include <memory>

#include <openssl/evp.h>

namespace fermata::store {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tokens are hashed and stored as they lie in memory");

// One context a thread: making one costs more than hashing a block.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    FERMATA_CHECK(context_ && EVP_DigestInit_ex2(context_.get(), algorithm(), nullptr) == 1,
                  "OpenSSL has SHA-256");
  }

  void add(std::span<const std::byte> bytes) {
    FERMATA_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1,
                  "hashing does not fail");
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }

  // Ready for the next digest afterwards.
  void finish(std::array<std::byte, 32>& out) {
    FERMATA_CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(out.data()),
                                     nullptr) == 1 &&
                      EVP_DigestInit_ex2(context_.get(), nullptr, nullptr) == 1,
                  "hashing does not fail");
  }

 private:
  static const EVP_MD* algorithm() {
    static const EVP_MD* const found = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return found;
  }

  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

Sha256& hasher() {
  thread_local Sha256 of_this_thread;
  return of_this_thread;
}

std::size_t block_size() { return static_cast<std::size_t>(block_tokens.value); }

}  // namespace

bool valid_name(std::string_view name) { return is_page_name(name); }

BlockKey root_key(const Owner& owner, const Fingerprint& fingerprint, Kind kind) {
  Sha256& hash = hasher();
  hash.add(kind == Kind::blocks ? "fermata blocks 1\n" : "fermata snapshot 1\n");
  hash.add(owner.bytes);
  hash.add(fingerprint);
  BlockKey key;
  hash.finish(key.bytes);
  return key;
}

BlockKey next_key(const BlockKey& before, std::span<const TokenId> tokens) {
  FERMATA_CHECK(!tokens.empty() && tokens.size() <= block_size(), "a key covers one block");
  Sha256& hash = hasher();
  hash.add(before.bytes);
  hash.add(std::as_bytes(tokens));
  BlockKey key;
  hash.finish(key.bytes);
  return key;
}

std::vector<BlockKey> chain_of(const BlockKey& root, std::span<const TokenId> tokens) {
  std::vector<BlockKey> chain;
  chain.reserve((tokens.size() + block_size() - 1) / block_size());
  for (BlockKey last = root; !tokens.empty();) {
    const std::size_t n = std::min(tokens.size(), block_size());
    last = next_key(last, tokens.first(n));
    chain.push_back(last);
    tokens = tokens.subspan(n);
  }
  return chain;
}

bool is_prefix(const Page& page, std::span<const TokenId> tokens) {
  const auto n = static_cast<std::size_t>(page.tokens.value);
  if (n > tokens.size() || n == 0) return false;
  const BlockKey root = root_key(page.owner, page.fingerprint, page.kind);
  return chain_of(root, tokens.first(n)).back() == page.end;
}

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text += digits[std::to_integer<std::size_t>(b >> 4)];
    text += digits[std::to_integer<std::size_t>(b & std::byte{15})];
  }
  return text;
}

bool from_hex(std::string_view text, std::span<std::byte> into) {
  if (text.size() != into.size() * 2) return false;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (std::size_t i = 0; i < into.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    into[i] = static_cast<std::byte>(high * 16 + low);
  }
  return true;
}

std::string_view name_of(Kind kind) { return kind == Kind::blocks ? "blocks" : "snapshot"; }

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::idle:
      return "idle";
    case Reason::parked:
      return "parked";
    case Reason::shutdown:
      return "shutdown";
    case Reason::client_request:
      return "client_request";
  }
  return "?";
}

}  // namespace fermata::store
