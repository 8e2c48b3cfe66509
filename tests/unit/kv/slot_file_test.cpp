// llama-server's files of slots, whole, old and damaged.
#include "kv/slot_file.h"

#include "base/random.h"

#include <cstring>

#include <gtest/gtest.h>

namespace fermata::kv {
namespace {

std::vector<TokenId> some_tokens(std::size_t n) {
  std::vector<TokenId> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(TokenId{static_cast<std::int32_t>(i * 7)});
  return out;
}

std::vector<std::byte> file_of(std::span<const TokenId> tokens, std::size_t state_bytes) {
  std::vector<std::byte> out = slot_file_head(tokens);
  out.resize(out.size() + state_bytes, std::byte{1});
  return out;
}

TEST(SlotFile, ReadsWhatItWrote) {
  const auto tokens = some_tokens(100);
  const auto bytes = file_of(tokens, 33);
  const auto file = read_slot_file(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->tokens, tokens);
  EXPECT_EQ(file->state.size(), 33U);
}

TEST(SlotFile, TellsOfAnotherVersionOfTheTokens) {
  auto bytes = file_of(some_tokens(3), 0);
  bytes[16] = std::byte{2};
  const auto file = read_slot_file(bytes);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error(), SlotFileFault::other_version);
}

// B4: whatever the bytes are, they are a file or they are refused.
TEST(SlotFile, NothingInAFileReadsBeyondIt) {
  const auto good = file_of(some_tokens(20), 64);
  for (std::size_t n = 0; n < good.size(); ++n) {
    const auto file = read_slot_file(std::span(good).first(n));
    EXPECT_EQ(file.ok(), n >= good.size() - 64) << n;
  }
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = good;
    const auto at = static_cast<std::size_t>(random.between(0, 110));
    bytes[at] = static_cast<std::byte>(random.between(0, 255));
    const auto file = read_slot_file(bytes);
    if (!file.ok()) continue;
    EXPECT_FALSE(file->tokens.empty());
    EXPECT_LE(file->state.data() + file->state.size(), bytes.data() + bytes.size());
  }
}

}  // namespace
}  // namespace fermata::kv
