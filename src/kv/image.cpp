#include "kv/image.h"

#include <algorithm>

namespace fermata::kv {

Tokens tokens_of(std::span<const Piece> pieces) {
  Tokens out{0};
  for (const Piece& piece : pieces) out += piece.tokens();
  return out;
}

Bytes bytes_of(std::span<const Piece> pieces) {
  Bytes out{0};
  for (const Piece& piece : pieces) out += piece.size();
  return out;
}

std::size_t common_pieces(std::span<const Piece> a, std::span<const Piece> b) {
  std::size_t out = 0;
  while (out < a.size() && out < b.size() && a[out].is_same(b[out])) ++out;
  return out;
}

Tokens common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t n = std::min(a.size(), b.size());
  const auto [end, unused] =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin());
  return Tokens(end - a.begin());
}

Tokens shared(const Image& a, const Image& b) {
  return tokens_of(std::span(a.pieces).first(common_pieces(a.pieces, b.pieces)));
}

Bytes Image::size() const { return is_away() ? away : bytes_of(pieces); }

}  // namespace fermata::kv
