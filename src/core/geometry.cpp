#include "core/geometry.h"

#include <array>
#include <utility>

namespace fermata {
namespace {

constexpr std::array<std::pair<KvType, std::string_view>, 9> kv_type_names{{
    {KvType::f32, "f32"},
    {KvType::f16, "f16"},
    {KvType::bf16, "bf16"},
    {KvType::q8_0, "q8_0"},
    {KvType::q4_0, "q4_0"},
    {KvType::q4_1, "q4_1"},
    {KvType::iq4_nl, "iq4_nl"},
    {KvType::q5_0, "q5_0"},
    {KvType::q5_1, "q5_1"},
}};

}  // namespace

std::string_view name(KvType type) { return kv_type_names[static_cast<std::size_t>(type)].second; }

std::optional<KvType> kv_type_from(std::string_view name) {
  for (const auto& [type, known] : kv_type_names) {
    if (known == name) return type;
  }
  return std::nullopt;
}

bool is_quantized(KvType type) {
  return type != KvType::f32 && type != KvType::f16 && type != KvType::bf16;
}

std::string find_fault(const Geometry& geometry, bool flash_attention) {
  if (geometry.n_parallel < 1 || geometry.n_parallel > n_parallel_max) {
    return "n_parallel must be between 1 and " + std::to_string(n_parallel_max) + ", not " +
           std::to_string(geometry.n_parallel);
  }
  if (geometry.n_ctx < Tokens(0) || geometry.n_ctx > n_ctx_max) {
    return "n_ctx must be between 0 (the model's own) and " + std::to_string(n_ctx_max.value) +
           ", not " + std::to_string(geometry.n_ctx.value);
  }
  if (geometry.n_ctx > Tokens(0) && geometry.n_ctx < Tokens(geometry.n_parallel)) {
    return "n_ctx " + std::to_string(geometry.n_ctx.value) + " is less than one cell for each of " +
           std::to_string(geometry.n_parallel) + " sequences; raise n_ctx or lower n_parallel";
  }
  if (is_quantized(geometry.cache_type_v) && !flash_attention) {
    return "cache_type_v " + std::string(name(geometry.cache_type_v)) +
           " needs flash attention; turn it on or use f16";
  }
  return "";
}

}  // namespace fermata
