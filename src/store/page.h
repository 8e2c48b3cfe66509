// Values of the store: what a saved conversation (a page) is and how its tokens are named. Plain
// values; every function here is thread-safe and does no I/O.
#pragma once

#include "base/types.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::store {

// Bytes of a digest, as a type of their own.
template <class Tag, std::size_t N>
struct Digest {
  static constexpr std::size_t size = N;
  std::array<std::byte, N> bytes{};
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

using Owner = Digest<struct OwnerTag, 32>;      // All zero: nobody in particular.
using BlockKey = Digest<struct KeyTag, 32>;     // Lookup key: what tokens, whose, of what model.
using ContentId = Digest<struct IdTag, 16>;     // What bytes.
using PageId = Digest<struct PageTag, 16>;      // One stored page; never used again.
using Fingerprint = std::array<std::byte, 32>;  // Of weights, KV types, ...: engine::Fingerprint.

inline constexpr Tokens block_tokens{256};
inline constexpr std::size_t name_bytes_max = 128;
inline constexpr std::size_t extra_bytes_max = std::size_t{64} << 10;
inline constexpr Tokens page_tokens_max{std::int64_t{4} << 20};
inline constexpr Bytes block_bytes_max{std::int64_t{16} << 30};

// How the bytes of a page are cut.
enum class Kind : std::uint8_t {
  blocks,    // One run of bytes for each 256 tokens, and one for the tail of 1 to 255 if any.
  snapshot,  // One run of bytes for all tokens: of no use for a part of them.
};

enum class Reason : std::uint8_t {
  idle,            // A finished turn that made room.
  parked,          // Of a running request.
  shutdown,        // Written while the server stopped.
  client_request,  // Asked for by name.
};

// What everybody may know of a page without reading its file.
struct Page {
  PageId id;
  Owner owner;
  Fingerprint fingerprint{};
  Kind kind = Kind::blocks;
  Reason reason = Reason::idle;
  bool pinned = false;        // Never evicted, not by age either.
  bool from_outside = false;  // Somebody's bytes, imported. See Draft.
  std::string name;           // Empty: none. Else unique for its owner.
  double price_seconds = 0;   // Of prefill that are lost with it.
  std::int64_t created = 0;   // Seconds since 1970.
  std::int64_t last_used = 0;
  Tokens tokens;
  Tokens in_chunks;  // Leading tokens computed as whole chunks; only kept for the caller.
  Bytes bytes;       // Of its blocks; those it shares with other pages are counted in each.
  BlockKey end;      // Lookup key of all its tokens.
};

// What is asked to be stored. The content ids and lookup keys are made by the store's worker.
struct Draft {
  Owner owner;
  Fingerprint fingerprint{};
  Kind kind = Kind::blocks;
  Reason reason = Reason::idle;
  bool pinned = false;
  // The bytes are not ours: who made them may have chosen such as have the content id of others'.
  // So they are compared with what is there under their ids, and so is what later has theirs.
  bool from_outside = false;
  std::string name;  // Empty: none. Else takes the place of the owner's page of that name.
  // A page without a name or a pin that these tokens go on from, or are the same as, goes when this
  // one is durable, unless it is being loaded; and what a named page holds is not stored once more
  // without a name. Settled when it is written, after what was handed in before.
  bool replaces_beginning = false;
  double price_seconds = 0;  // >= 0
  Tokens in_chunks;
  std::vector<TokenId> tokens;   // 1 to page_tokens_max.
  std::vector<std::byte> extra;  // Of the caller (sampler state, ...): at most extra_bytes_max.
};

// A stored page that begins as some tokens do.
struct Match {
  PageId page;
  Tokens tokens;       // Leading tokens that it can give.
  std::size_t blocks;  // Its leading blocks that hold them; 1 for a snapshot.
  Tokens in_chunks;    // As Page::in_chunks, at most `tokens`.
};

// How many runs of bytes a page of so many tokens has.
constexpr std::size_t block_count(Kind kind, Tokens tokens) {
  if (kind == Kind::snapshot) return 1;
  return static_cast<std::size_t>((tokens.value + block_tokens.value - 1) / block_tokens.value);
}
// Tokens of block i of them.
constexpr Tokens tokens_of_block(Kind kind, Tokens tokens, std::size_t i) {
  if (kind == Kind::snapshot) return tokens;
  const Tokens before = block_tokens * static_cast<std::int64_t>(i);
  return tokens - before < block_tokens ? tokens - before : block_tokens;
}

// As core has it.
bool valid_name(std::string_view name);

// The chain of lookup keys: each covers the one before it and up to 256 more tokens.
BlockKey root_key(const Owner& owner, const Fingerprint& fingerprint, Kind kind);
// REQUIRES: 1 to 256 tokens.
BlockKey next_key(const BlockKey& before, std::span<const TokenId> tokens);
// One for each full block, and one for the tail if any.
std::vector<BlockKey> chain_of(const BlockKey& root, std::span<const TokenId> tokens);

// Whether the page's tokens are the first of these, for the same owner, model and kind. About a
// microsecond for each 256 tokens of the page.
bool is_prefix(const Page& page, std::span<const TokenId> tokens);

// XXH3-128 of the bytes, seeded by the fingerprint, so that models never share a block.
ContentId content_id(const Fingerprint& fingerprint, std::span<const std::byte> bytes);

std::string to_hex(std::span<const std::byte> bytes);
template <class Tag, std::size_t N>
std::string to_hex(const Digest<Tag, N>& digest) {
  return to_hex(std::span<const std::byte>(digest.bytes));
}
// False: not exactly 2 * into.size() digits 0-9 a-f.
bool from_hex(std::string_view text, std::span<std::byte> into);

std::string_view name_of(Kind kind);
std::string_view name_of(Reason reason);

}  // namespace fermata::store

template <class Tag, std::size_t N>
struct std::hash<fermata::store::Digest<Tag, N>> {
  // Digests are evenly spread as they are.
  std::size_t operator()(const fermata::store::Digest<Tag, N>& digest) const {
    std::size_t out = 0;
    std::memcpy(&out, digest.bytes.data(), sizeof out);
    return out;
  }
};
