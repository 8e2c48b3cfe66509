// The bytes in which the library keeps the cells of a sequence: read here to learn the shape of a
// model's caches, and to refuse damaged bytes before the library sees them. Holds for the pinned
// release; a context whose bytes look otherwise is not trusted with ranges.
#pragma once

#include "base/types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ggml.h>

namespace fermata::engine::llama {

// What one cell holds in one layer, in elements. v == 0: the layer keeps no V (latent attention).
struct LayerWidths {
  std::int64_t k = 0;
  std::int64_t v = 0;

  friend bool operator==(const LayerWidths&, const LayerWidths&) = default;
};

// One cache: what its cells hold, and how the library writes them when it has a single stream.
struct CacheShape {
  std::vector<LayerWidths> layers;
  ggml_type k = GGML_TYPE_F16;
  ggml_type v = GGML_TYPE_F16;
  bool v_transposed = false;
  bool cell_extension = false;  // Cells carry a 2D position or a token id.

  // Bytes of one cell over all layers, without its position.
  Bytes cell_bytes() const;
  // Bytes of the state of a sequence of that many cells.
  std::size_t state_bytes(Tokens cells) const;
  // A state of one cell at position 0, all zeros, such as the library would write it.
  std::vector<std::byte> one_cell() const;
  // Whether `state` is exactly the cells [begin, end), each once.
  bool holds(std::span<const std::byte> state, Tokens begin, Tokens end) const;
  // Whether no number in them is infinite, none or out of half a float's range: sums of such spoil
  // the rows of all sequences, masked or not. REQUIRES: it holds so many cells.
  bool is_finite(std::span<const std::byte> state, Tokens cells) const;
};

// Bytes of `width` elements, rounded up to whole blocks.
std::int64_t row_bytes(ggml_type type, std::int64_t width);

// Empty when the types of the cache can hold heads of these sizes; else one line. The library packs
// quantised numbers in blocks and aborts on a row, or half a head, that is no whole number of them.
std::string find_type_fault(const CacheShape& shape, std::int64_t head_k, std::int64_t head_v);

// Where the first cache of a state starts: behind the magic number and the id of the sequence.
inline constexpr std::size_t state_header_bytes = 8;

// Walks over one cache in `state` from `offset`, which ends behind it. Empty when the bytes are not
// a cache with one stream and at least one cell; `offset` is as before then.
std::optional<CacheShape> read_cache(std::span<const std::byte> state, std::size_t& offset);

}  // namespace fermata::engine::llama
