#include "core/geometry.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

namespace fermata {
namespace {

constexpr std::array all_types{KvType::f32,    KvType::f16,  KvType::bf16,
                               KvType::q8_0,   KvType::q4_0, KvType::q4_1,
                               KvType::iq4_nl, KvType::q5_0, KvType::q5_1};

TEST(KvType, NamesRoundTrip) {
  std::set<std::string_view> names;
  for (KvType type : all_types) {
    EXPECT_EQ(kv_type_from(name(type)), type) << name(type);
    names.insert(name(type));
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1",
                                               "iq4_nl", "q5_0", "q5_1"}));
}

TEST(KvType, OtherNamesAreNone) {
  for (std::string_view name : {"", "F16", "q8", "q8_0 ", "q6_K", "f16f16"}) {
    EXPECT_EQ(kv_type_from(name), std::nullopt) << name;
  }
}

TEST(KvType, OnlyFloatsAreNotQuantized) {
  for (KvType type : all_types) {
    const bool is_float = type == KvType::f32 || type == KvType::f16 || type == KvType::bf16;
    EXPECT_EQ(is_quantized(type), !is_float) << name(type);
  }
}

std::string fault(std::int64_t n_ctx, std::int32_t n_parallel) {
  return find_fault({.n_ctx = Tokens(n_ctx), .n_parallel = n_parallel}, true);
}

TEST(Geometry, OrdinaryOnesHaveNoFault) {
  EXPECT_EQ(find_fault({}, true), "");
  EXPECT_EQ(find_fault({}, false), "");
  EXPECT_EQ(fault(0, 1), "");
  EXPECT_EQ(fault(1, 1), "");
  EXPECT_EQ(fault(4096, 4), "");
  EXPECT_EQ(fault(n_ctx_max.value, n_parallel_max), "");
  EXPECT_EQ(fault(255, 255), "");
  EXPECT_EQ(fault(0, 255), "");
}

TEST(Geometry, CellsOutsideTheRangeAreNamedWithIt) {
  for (std::int64_t n_ctx :
       {std::int64_t{-5}, n_ctx_max.value + 1, std::int64_t{1} << 31, std::int64_t{1} << 62}) {
    const std::string text = fault(n_ctx, 4);
    EXPECT_NE(text.find("n_ctx must be between 0"), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(n_ctx)), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(n_ctx_max.value)), std::string::npos) << text;
  }
}

TEST(Geometry, SeatsOutsideTheRangeAreNamedWithIt) {
  for (std::int32_t n_parallel : {0, -1, 256, 10000}) {
    const std::string text = fault(4096, n_parallel);
    EXPECT_EQ(text, "n_parallel must be between 1 and 255, not " + std::to_string(n_parallel));
  }
}

TEST(Geometry, EverySequenceNeedsACell) {
  const std::string text = fault(3, 4);
  EXPECT_NE(text.find("raise n_ctx or lower n_parallel"), std::string::npos) << text;
  EXPECT_EQ(fault(4, 4), "");
}

TEST(Geometry, QuantizedValuesNeedFlashAttention) {
  for (KvType type : all_types) {
    const Geometry geometry{.cache_type_v = type};
    EXPECT_EQ(find_fault(geometry, true), "") << name(type);
    const std::string text = find_fault(geometry, false);
    EXPECT_EQ(text.empty(), !is_quantized(type)) << name(type);
    if (text.empty()) continue;
    EXPECT_NE(text.find(name(type)), std::string::npos) << text;
    EXPECT_NE(text.find("flash attention"), std::string::npos) << text;
  }
  // Keys may be quantized without it.
  EXPECT_EQ(find_fault({.cache_type_k = KvType::q4_0}, false), "");
}

}  // namespace
}  // namespace fermata
