// A sequence out of the pool.
#pragma once

#include "base/types.h"
#include "core/request.h"
#include "kv/vault.h"

#include <span>
#include <vector>

namespace fermata::kv {

inline constexpr Tokens everything{std::int64_t{1} << 62};

// Its tokens, and the exact bytes of their cells, from first to last, or none: there are none, or
// they are out of RAM. Lives shorter than its pool.
struct Image {
  std::vector<TokenId> tokens;
  std::vector<Piece> pieces;
  Tokens in_chunks{0};            // Leading tokens that were computed as whole chunks; see Pool.
  Tokens unshifted = everything;  // Leading tokens that stand where they were computed.
  Owner owner{};
  Bytes away{0};  // So many bytes are kept where it is slower, whether they are here too or not.

  bool is_away() const { return pieces.empty() && away > Bytes(0); }
  bool has_bytes() const { return !pieces.empty() || away > Bytes(0); }
  Bytes size() const;
};

// Leading tokens whose bytes both images hold as the same ones.
Tokens shared(const Image& a, const Image& b);

Tokens tokens_of(std::span<const Piece> pieces);
Bytes bytes_of(std::span<const Piece> pieces);
// How many pieces at the beginning are the same.
std::size_t common_pieces(std::span<const Piece> a, std::span<const Piece> b);
// How many tokens at the beginning are the same.
Tokens common_prefix(std::span<const TokenId> a, std::span<const TokenId> b);

}  // namespace fermata::kv
