// The shape of the KV cache: what a reconfiguration changes and what a context is built from.
#pragma once

#include "base/types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fermata {

enum class KvType : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1 };

std::string_view name(KvType type);
std::optional<KvType> kv_type_from(std::string_view name);
bool is_quantized(KvType type);

// pooled: one pool, any sequence may use any cell. split: a fixed seat of cells for each sequence.
enum class Layout : std::uint8_t { pooled, split };

struct Geometry {
  Tokens n_ctx{0};  // Cells in all; 0 = the model's trained length.
  std::int32_t n_parallel = 4;
  KvType cache_type_k = KvType::f16;
  KvType cache_type_v = KvType::f16;
  Layout layout = Layout::pooled;

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

// libllama addresses 256 sequences at most; the pooled layout needs one of them as scratch.
inline constexpr std::int32_t n_parallel_max = 255;
// More cells than any machine of today holds; keeps arithmetic on cells and bytes far from
// overflow.
inline constexpr Tokens n_ctx_max{1 << 28};

// A block: so many consecutive tokens of one sequence, from a multiple of it on.
inline constexpr Tokens block_tokens{256};
constexpr Tokens next_block_end(Tokens from, Tokens block = block_tokens) {
  return (from / block.value + Tokens(1)) * block.value;
}

// Whether a conversation that is cut to its first `keep` tokens is still the same one, and not
// lost.
constexpr bool goes_on(Tokens length, Tokens keep) { return keep * 4 >= length * 3; }

// Empty when a context of this shape may be asked for; else one line: what, why and the mend.
// The library can still refuse (memory, model); that is a BuildFault of the engine.
std::string find_fault(const Geometry& geometry, bool flash_attention);

}  // namespace fermata
