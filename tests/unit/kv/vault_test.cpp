// Bytes outside the pool: counted once, within the budget, in buffers that are used again.
#include "kv/vault.h"

#include <gtest/gtest.h>

namespace fermata::kv {
namespace {

ByteBuffer filled(std::size_t size, char with) {
  return ByteBuffer(size, static_cast<std::byte>(with));
}

Piece put(Vault& vault, std::size_t size, char with, Hold hold, bool once = false) {
  return vault.put(filled(size, with), Tokens(4), hold, once);
}

TEST(Vault, CountsParkedBytesAndMirrorsApartUntilTheyGo) {
  Vault vault({});
  {
    const Piece parked = put(vault, 100, 'a', Hold::parked);
    Piece mirror = put(vault, 40, 'b', Hold::mirror);
    EXPECT_EQ(vault.parked(), Bytes(100));
    EXPECT_EQ(vault.mirrored(), Bytes(40));
    EXPECT_EQ(mirror.bytes()[0], std::byte{'b'});
    mirror.hold_as(Hold::parked);
    EXPECT_EQ(vault.parked(), Bytes(140));
    EXPECT_EQ(vault.mirrored(), Bytes(0));
    const Piece moved = std::move(mirror);
    EXPECT_EQ(vault.parked(), Bytes(140));
  }
  EXPECT_EQ(vault.parked(), Bytes(0));
  EXPECT_EQ(vault.mirrored(), Bytes(0));
}

TEST(Vault, EqualBlocksAreStoredOnceAndChargedToTheParkedOne) {
  Vault vault({.preempt = Bytes(150)});
  Piece first = put(vault, 100, 'a', Hold::mirror, true);
  {
    Piece second = put(vault, 50, 'a', Hold::mirror, true);  // Equal bytes, another length.
    EXPECT_EQ(vault.mirrored(), Bytes(150));
  }
  Vault roomy({.preempt = Bytes(200)});
  Piece a = put(roomy, 100, 'a', Hold::mirror, true);
  Piece b = put(roomy, 100, 'a', Hold::mirror, true);
  EXPECT_EQ(roomy.mirrored(), Bytes(100));
  b.hold_as(Hold::parked);
  EXPECT_EQ(roomy.parked(), Bytes(100));
  EXPECT_EQ(roomy.mirrored(), Bytes(0));
  a = Piece();
  EXPECT_EQ(roomy.parked(), Bytes(100));
  EXPECT_EQ(b.bytes()[99], std::byte{'a'});
  b = Piece();
  EXPECT_TRUE(roomy.has_room(Bytes(200), Hold::parked));
  const Piece again = put(roomy, 100, 'a', Hold::mirror, true);  // The first is forgotten.
  EXPECT_EQ(roomy.mirrored(), Bytes(100));
}

TEST(Vault, NeverTakesMoreThanItsBudget) {
  Vault vault({.preempt = Bytes(100)});
  const Piece most = put(vault, 90, 'a', Hold::parked);
  EXPECT_TRUE(vault.has_room(Bytes(10), Hold::parked));
  EXPECT_FALSE(vault.has_room(Bytes(11), Hold::parked));
  EXPECT_DEATH((void)put(vault, 11, 'b', Hold::mirror), "over the budget");
}

TEST(Vault, ABufferIsUsedAgainForACopyOfAboutItsSize) {
  Vault vault({});
  const std::byte* memory = nullptr;
  {
    ByteBuffer buffer = vault.buffer(Bytes(5000));
    ASSERT_TRUE(resize(buffer, 5000));
    const Piece piece = vault.put(std::move(buffer), Tokens(4), Hold::parked, false);
    memory = piece.bytes().data();
  }
  EXPECT_NE(vault.buffer(Bytes(100)).data(), memory) << "far too large: it would hide its size";
  ByteBuffer again = vault.buffer(Bytes(5010));
  EXPECT_EQ(again.data(), memory);
  EXPECT_NE(vault.buffer(Bytes(5010)).data(), memory);
  EXPECT_FALSE(vault.spare(Bytes(5010)));
  vault.give_back(std::move(again));
  EXPECT_TRUE(vault.spare(Bytes(5010)));
}

TEST(Vault, SparesDoNotEatTheBudget) {
  Vault vault({.preempt = Bytes(10'000)});
  ByteBuffer large = filled(6000, 'a');
  const std::byte* memory = large.data();
  vault.give_back(std::move(large));
  const Piece piece = put(vault, 8000, 'b', Hold::parked);
  ByteBuffer small = filled(100, 'c');
  const std::byte* kept = small.data();
  vault.give_back(std::move(small));  // The older one has to go.
  EXPECT_NE(vault.buffer(Bytes(6000)).data(), memory);
  EXPECT_EQ(vault.buffer(Bytes(100)).data(), kept);
}

}  // namespace
}  // namespace fermata::kv
