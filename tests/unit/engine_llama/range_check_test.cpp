// Ranges that come from outside: whatever is in them, nobody else's text changes and the process
// goes on.
#include "engine/engine.h"
#include "engine/sampler.h"
#include "engine/vocabulary.h"
#include "support/llama_models.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::engine::llama {
namespace {

using fermata::testing::load_test_model;
using fermata::testing::tiny_model_path;

constexpr KvType all_types[] = {KvType::f32,  KvType::f16,  KvType::bf16,
                                KvType::q8_0, KvType::q4_0, KvType::q4_1,
                                KvType::q5_0, KvType::q5_1, KvType::iq4_nl};

class Scene {
 public:
  explicit Scene(KvType type, bool flash = true) : model_(load_test_model(tiny_model_path())) {
    EngineOptions options;
    options.threads = 1;
    options.poll = 0;
    options.flash_attention = flash;
    Geometry shape;
    shape.n_ctx = Tokens(512);
    shape.n_parallel = 2;
    shape.cache_type_k = shape.cache_type_v = type;
    auto built = model_->build(shape, options);
    EXPECT_TRUE(built.ok());
    engine_ = std::move(*built);
    check_ = engine_->range_check();
  }

  Engine& engine() { return *engine_; }
  bool is_sound(const ByteBuffer& bytes, std::int64_t begin, std::int64_t end) const {
    return check_->is_sound(bytes, Tokens(begin), Tokens(end));
  }
  void compute(Seat seat, const std::vector<TokenId>& text) {
    const RowGroup group{seat, engine_->position(seat), text, nullptr, nullptr};
    GroupResult result;
    EXPECT_EQ(engine_->step({&group, 1}, {&result, 1}), StepOutcome::done);
  }
  Sampled say(Seat seat, const std::vector<TokenId>& text) {
    SamplingParams params;
    params.temperature = 0.0F;
    params.n_probs = 1;
    auto sampler = fermata::testing::tiny_vocabulary()->make_sampler(params, {});
    EXPECT_TRUE(sampler.ok());
    const RowGroup group{seat, engine_->position(seat), text, sampler->get(), nullptr};
    GroupResult result;
    EXPECT_EQ(engine_->step({&group, 1}, {&result, 1}), StepOutcome::done);
    EXPECT_TRUE(result.sampled.has_value() || result.sampler_failed);
    return result.sampled.value_or(Sampled{});
  }
  ByteBuffer range(Seat seat, std::int64_t begin, std::int64_t end) {
    ByteBuffer out;
    EXPECT_TRUE(engine_->export_range(seat, Tokens(begin), Tokens(end), out).ok());
    return out;
  }

 private:
  std::shared_ptr<Model> model_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<const RangeCheck> check_;
};

std::vector<TokenId> some_text(std::size_t n) {
  std::vector<TokenId> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back(TokenId{static_cast<std::int32_t>(65 + i % 50)});
  return out;
}

TEST(RangeCheck, WhatAnEngineWroteIsSoundAtItsPlaceAlone) {
  for (const KvType type : all_types) {
    Scene scene(type);
    scene.compute(Seat(0), some_text(40));
    const ByteBuffer bytes = scene.range(Seat(0), 10, 30);
    EXPECT_TRUE(scene.is_sound(bytes, 10, 30)) << name(type);
    EXPECT_FALSE(scene.is_sound(bytes, 0, 20)) << name(type);
    EXPECT_FALSE(scene.is_sound(bytes, 10, 29)) << name(type);
    for (const std::size_t cut : {std::size_t{0}, std::size_t{63}, bytes.size() - 1}) {
      const ByteBuffer part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
      EXPECT_FALSE(scene.is_sound(part, 10, 30)) << name(type) << " " << cut;
    }
  }
}

// 0 x NaN is NaN: one bad number in a cell that is masked spoiled the rows of all others.
TEST(RangeCheck, NumbersThatAreNoneAreFoundWhereverTheyAre) {
  for (const bool flash : {true, false}) {
    Scene scene(KvType::f16, flash);
    scene.compute(Seat(0), some_text(3));
    const ByteBuffer bytes = scene.range(Seat(0), 0, 3);
    std::size_t numbers = 0;
    for (std::size_t at = 64; at + 2 <= bytes.size(); at += 2) {
      ByteBuffer bad = bytes;
      const std::uint16_t none = 0x7e00;
      std::memcpy(bad.data() + at, &none, sizeof none);
      numbers += scene.is_sound(bad, 0, 3) ? 0 : 1;
    }
    // All but owners and padding.
    EXPECT_GT(numbers, (bytes.size() - 64) / 2 - 20) << flash;
  }
}

TEST(RangeCheck, EveryTypeHasItsOwnNumbers) {
  for (const KvType type : all_types) {
    Scene scene(type);
    scene.compute(Seat(0), some_text(3));
    ByteBuffer bytes = scene.range(Seat(0), 0, 3);
    ASSERT_TRUE(scene.is_sound(bytes, 0, 3)) << name(type);
    // The last kilobyte is V alone.
    std::fill(bytes.end() - 1024, bytes.end(), std::byte{0xff});
    EXPECT_FALSE(scene.is_sound(bytes, 0, 3)) << name(type);
  }
}

// Every number as large as is taken: its own sequence may say anything, the others say what they
// did, and nothing ends.
TEST(RangeCheck, ExtremeNumbersStayAmongThemselves) {
  constexpr std::int64_t cells = 4;
  for (const bool flash : {true, false}) {
    Scene scene(KvType::f16, flash);
    const std::vector<TokenId> text = some_text(30);
    const std::vector<TokenId> next{TokenId{70}};
    scene.compute(Seat(1), text);
    const Sampled alone = scene.say(Seat(1), next);
    scene.engine().clear(Seat(1));
    scene.compute(Seat(0), some_text(cells));
    ByteBuffer bytes = scene.range(Seat(0), 0, cells);
    scene.engine().clear(Seat(0));
    for (std::size_t at = 64; at + 2 <= bytes.size(); at += 2) {
      ByteBuffer changed = bytes;
      const std::uint16_t most = at % 4 == 0 ? 0x7bff : 0xfbff;  // 65504, -65504
      std::memcpy(changed.data() + at, &most, sizeof most);
      if (scene.is_sound(changed, 0, cells)) bytes = std::move(changed);
    }
    ASSERT_TRUE(scene.engine().import_range(Seat(0), bytes).ok());
    scene.compute(Seat(1), text);
    const Sampled beside = scene.say(Seat(1), next);
    EXPECT_EQ(beside.token, alone.token) << flash;
    EXPECT_NEAR(beside.logprob, alone.logprob, 1e-3) << flash;
    for (int i = 0; i < 5; ++i) scene.say(Seat(0), next);
  }
}

}  // namespace
}  // namespace fermata::engine::llama
