// Pages that come from outside.
#include "store/parcel.h"

#include "unit/store/rig.h"

#include <gtest/gtest.h>

namespace fermata::store {
namespace {

std::vector<std::byte> parcel_of(Keeper& keeper, const PageId& id) {
  std::vector<std::byte> out;
  Page page;
  for (std::size_t part = 0;; ++part) {
    ByteBuffer bytes;
    const Outcome outcome = keeper.read_part(id, part, bytes, page);
    if (outcome == Outcome::missing) return out;
    EXPECT_EQ(outcome, Outcome::done);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
}

Given given_of(const Parcel& parcel) {
  Given out;
  out.draft.tokens = parcel.tokens;
  out.draft.from_outside = true;
  for (const auto block : parcel.blocks) out.bytes.emplace_back(block.begin(), block.end());
  return out;
}

TEST(Parcel, APageIsTheSameElsewhere) {
  KeeperRig here, there;
  for (const std::size_t tokens : {1U, 255U, 256U, 257U, 900U}) {
    Given page = named(page_of(tokens, tokens), "secret");
    page.draft.pinned = true;
    Page saved;
    ASSERT_EQ(here.save(page, &saved), Outcome::done);
    const std::vector<std::byte> bytes = parcel_of(*here.keeper, saved.id);
    const auto read = read_parcel(bytes);
    ASSERT_TRUE(read.value.has_value());
    EXPECT_EQ(read.value->page.name, "");
    EXPECT_FALSE(read.value->page.pinned);
    EXPECT_EQ(there.save(given_of(*read.value)), Outcome::done);
    EXPECT_EQ(there.check(page), Outcome::done);
    // It stays one from outside when the folder is opened again.
    there.open();
    EXPECT_TRUE(there.keeper->list(std::nullopt, "").front().from_outside);
  }
}

TEST(Parcel, WhatIsCutOrChangedIsNone) {
  KeeperRig rig;
  Page saved;
  ASSERT_EQ(rig.save(page_of(5, 300, 60), &saved), Outcome::done);
  const std::vector<std::byte> bytes = parcel_of(*rig.keeper, saved.id);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(read_parcel(std::span(bytes).first(cut)).value) << cut;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::vector<std::byte> changed = bytes;
    changed[at] ^= std::byte{0x10};
    EXPECT_FALSE(read_parcel(changed).value) << at;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read_parcel(longer).value);
}

TEST(Parcel, PartsThatAreNotThereAreMissing) {
  KeeperRig rig;
  Page saved;
  ASSERT_EQ(rig.save(page_of(6, 300), &saved), Outcome::done);
  ByteBuffer bytes;
  Page page;
  EXPECT_EQ(rig.keeper->read_part(saved.id, 3, bytes, page), Outcome::missing);
  EXPECT_EQ(rig.keeper->read_part(PageId{}, 0, bytes, page), Outcome::missing);
}

// Two different blocks of one content id: the hash is no seal. Its first two stripes multiply the
// halves of a number; a half that equals the key's makes nothing of the other half.
std::vector<std::byte> twin(std::uint32_t first, std::uint32_t second) {
  std::vector<std::byte> out = bytes_of(99, 500);
  const std::uint32_t key_0 = 0x396cfeb8, key_1 = 0x2c81017c;  // Of seed 0.
  std::memcpy(out.data(), &key_0, 4);
  std::memcpy(out.data() + 4, &first, 4);
  std::memcpy(out.data() + 64, &key_1, 4);
  std::memcpy(out.data() + 68, &second, 4);
  return out;
}

class Forged : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(good_.bytes[0], bad_.bytes[0]);
    ASSERT_EQ(content_id({}, good_.bytes[0]), content_id({}, bad_.bytes[0]));
    good_.draft.owner = owner_of("victim");
    bad_.draft.from_outside = true;
  }
  static Given page_with(std::vector<std::byte> bytes, std::uint64_t seed) {
    Given out = page_of(seed, 100);
    out.bytes[0] = std::move(bytes);
    return out;
  }
  Outcome load(const Given& given, Loaded& into) {
    const auto match = rig_.keeper->find(given.draft.owner, {}, Kind::blocks, given.draft.tokens);
    return match ? rig_.keeper->load(match->page, {}, 1, into) : Outcome::missing;
  }
  void expect(const Given& given) {
    Loaded loaded;
    ASSERT_EQ(load(given, loaded), Outcome::done);
    EXPECT_TRUE(std::ranges::equal(loaded.blocks[0], given.bytes[0]));
  }

  KeeperRig rig_;
  Given good_ = page_with(twin(1000, 2000), 1);
  Given bad_ = page_with(twin(1001, 1999), 2);
};

// Whoever may import put bytes of their choice under another key's conversation.
TEST_F(Forged, ABlockThatIsThereIsNotTakenForAnother) {
  ASSERT_EQ(rig_.save(good_), Outcome::done);
  EXPECT_EQ(rig_.save(bad_), Outcome::failed);
  expect(good_);
  Loaded loaded;
  EXPECT_EQ(load(bad_, loaded), Outcome::missing);
}

TEST_F(Forged, ABlockThatCameFirstIsNotTakenForOurs) {
  ASSERT_EQ(rig_.save(bad_), Outcome::done);
  rig_.open();
  EXPECT_EQ(rig_.save(good_), Outcome::failed);
  expect(bad_);
  Loaded loaded;
  EXPECT_EQ(load(good_, loaded), Outcome::missing);
}

TEST_F(Forged, EqualBytesAreSharedAsEver) {
  Given same = page_with(good_.bytes[0], 3);
  same.draft.from_outside = true;
  ASSERT_EQ(rig_.save(same), Outcome::done);
  ASSERT_EQ(rig_.save(good_), Outcome::done);
  EXPECT_EQ(rig_.keeper->stats().blocks.value(), 1);
  EXPECT_EQ(rig_.save(bad_), Outcome::failed);
  expect(good_);
}

}  // namespace
}  // namespace fermata::store
