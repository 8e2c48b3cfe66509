// How pages and their tokens are named.
#include "store/page.h"

#include "unit/store/rig.h"

#include <gtest/gtest.h>

namespace fermata::store {
namespace {

std::vector<TokenId> tokens(std::size_t n, std::int32_t first = 0) {
  std::vector<TokenId> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = TokenId{first + static_cast<std::int32_t>(i)};
  return out;
}

// B5: a name left its folder. Only the documented set is a name.
TEST(Page, OnlyTheDocumentedNamesAreNames) {
  for (const char* name : {"a", "A.b_c-9", "x.", "-x", "0", "a..b"}) {
    EXPECT_TRUE(valid_name(name)) << name;
  }
  EXPECT_TRUE(valid_name(std::string(128, 'x')));
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(".x"), std::string("../x"),
        std::string("a/b"), std::string("a\\b"), std::string("/tmp/x"), std::string("%2e%2e%2fx"),
        std::string("x "), std::string("a\0b", 3), std::string("\xc3\xa9"), std::string("\xff"),
        std::string("a\nb"), std::string(129, 'x'), std::string("a:b")}) {
    EXPECT_FALSE(valid_name(name)) << name;
  }
}

TEST(Page, ChainCoversOwnerModelKindAndEveryToken) {
  const Owner nobody, somebody = owner_of("key");
  Fingerprint a{}, b{};
  b[31] = std::byte{1};
  const BlockKey root = root_key(nobody, a, Kind::blocks);
  EXPECT_NE(root, root_key(somebody, a, Kind::blocks));
  EXPECT_NE(root, root_key(nobody, b, Kind::blocks));
  EXPECT_NE(root, root_key(nobody, a, Kind::snapshot));
  EXPECT_EQ(root, root_key(owner_of(""), a, Kind::blocks));

  const std::vector<BlockKey> chain = chain_of(root, tokens(600));
  ASSERT_EQ(chain.size(), 3U);
  EXPECT_EQ(chain_of(root, tokens(512)), std::vector(chain.begin(), chain.begin() + 2));
  std::vector<TokenId> other = tokens(600);
  other[0] = TokenId{7};
  const std::vector<BlockKey> changed = chain_of(root, other);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NE(chain[i], changed[i]) << i;
  EXPECT_EQ(chain_of(root, tokens(601)).size(), 3U);
  EXPECT_NE(chain_of(root, tokens(601))[2], chain[2]);
}

TEST(Page, KnowsItsExtension) {
  Page page;
  page.tokens = Tokens(300);
  page.end = chain_of(root_key({}, {}, Kind::blocks), tokens(300)).back();
  EXPECT_TRUE(is_prefix(page, tokens(300)));
  EXPECT_TRUE(is_prefix(page, tokens(400)));
  EXPECT_FALSE(is_prefix(page, tokens(299)));
  EXPECT_FALSE(is_prefix(page, tokens(400, 1)));
}

TEST(Page, CutsTokensIntoBlocks) {
  EXPECT_EQ(block_count(Kind::blocks, Tokens(1)), 1U);
  EXPECT_EQ(block_count(Kind::blocks, Tokens(256)), 1U);
  EXPECT_EQ(block_count(Kind::blocks, Tokens(257)), 2U);
  EXPECT_EQ(block_count(Kind::snapshot, Tokens(1000)), 1U);
  EXPECT_EQ(tokens_of_block(Kind::blocks, Tokens(257), 0), Tokens(256));
  EXPECT_EQ(tokens_of_block(Kind::blocks, Tokens(257), 1), Tokens(1));
  EXPECT_EQ(tokens_of_block(Kind::snapshot, Tokens(257), 0), Tokens(257));
}

TEST(Page, HexThereAndBack) {
  PageId id;
  id.bytes[0] = std::byte{0x0a};
  id.bytes[15] = std::byte{0xff};
  const std::string text = to_hex(id);
  EXPECT_EQ(text, "0a0000000000000000000000000000ff");
  PageId back;
  EXPECT_TRUE(from_hex(text, back.bytes));
  EXPECT_EQ(back, id);
  EXPECT_FALSE(from_hex(text + "0", back.bytes));
  EXPECT_FALSE(from_hex("0A0000000000000000000000000000ff", back.bytes));
  EXPECT_FALSE(from_hex("../../../../../../../../../etc/p", back.bytes));
}

TEST(Page, ModelsNeverShareABlock) {
  Fingerprint a{}, b{};
  b[0] = std::byte{1};
  const std::vector<std::byte> bytes(100);
  EXPECT_NE(content_id(a, bytes), content_id(b, bytes));
}

}  // namespace
}  // namespace fermata::store
