// What may become a page of this server.
#include "kv/page_desk.h"
#include "unit/store/rig.h"

#include <gtest/gtest.h>

namespace fermata::kv {
namespace {

// Takes ranges whose first two bytes tell the right place.
class PlaceCheck final : public engine::RangeCheck {
 public:
  bool is_sound(std::span<const std::byte> bytes, Tokens begin, Tokens end) const override {
    return bytes.size() == 2 && static_cast<std::int64_t>(bytes[0]) == begin.value / 256 &&
           static_cast<std::int64_t>(bytes[1]) == (end - begin).value % 256;
  }
};

class ImportGates : public ::testing::Test {
 protected:
  ImportGates() { gate_.change(fingerprint_, store::Kind::blocks, std::make_shared<PlaceCheck>()); }

  // Of 300 tokens.
  std::string parcel(std::vector<std::vector<std::byte>> blocks, store::Fingerprint of,
                     store::Kind kind = store::Kind::blocks) {
    store::Given given;
    given.draft.tokens = store::tokens_of(1, 300);
    given.draft.fingerprint = of;
    given.draft.kind = kind;
    given.bytes = std::move(blocks);
    store::Page saved;
    EXPECT_EQ(rig_.save(given, &saved), store::Outcome::done);
    std::string out;
    for (std::size_t part = 0; part <= given.bytes.size(); ++part) {
      ByteBuffer bytes;
      EXPECT_EQ(rig_.keeper->read_part(saved.id, part, bytes, saved), store::Outcome::done);
      out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return out;
  }
  Result<PageImport, PageOutcome> check(std::string body) const {
    PageCommand command;
    command.action = PageAction::import;
    command.name = "x";
    command.body = std::move(body);
    return gate_.check(std::move(command));
  }
  PageOutcome refused(std::string body) const {
    const auto checked = check(std::move(body));
    EXPECT_FALSE(checked.ok());
    return checked.ok() ? PageOutcome::done : checked.error();
  }
  static std::vector<std::byte> block(int place, int tokens) {
    return {static_cast<std::byte>(place), static_cast<std::byte>(tokens)};
  }

  store::KeeperRig rig_;
  store::Fingerprint fingerprint_{std::byte{1}};
  ImportGate gate_;
};

TEST_F(ImportGates, WhatIsSoundGoesIn) {
  const auto checked = check(parcel({block(0, 0), block(1, 44)}, fingerprint_));
  ASSERT_TRUE(checked.ok());
  EXPECT_EQ(checked->parcel.tokens, store::tokens_of(1, 300));
  EXPECT_EQ(checked->parcel.blocks.size(), 2U);
  EXPECT_EQ(checked->command.name, "x");
}

// A range of another place ended the process when it was restored.
TEST_F(ImportGates, BlocksHaveTheirPlaces) {
  EXPECT_EQ(refused(parcel({block(1, 0), block(1, 44)}, fingerprint_)), PageOutcome::no_parcel);
  EXPECT_EQ(refused(parcel({block(0, 0), block(1, 43)}, fingerprint_)), PageOutcome::no_parcel);
  EXPECT_EQ(refused(parcel({block(0, 0), block(0, 44)}, fingerprint_)), PageOutcome::no_parcel);
}

TEST_F(ImportGates, OfAnotherModelOrKindIsForeign) {
  store::Fingerprint other{std::byte{2}};
  EXPECT_EQ(refused(parcel({block(0, 0), block(1, 44)}, other)), PageOutcome::foreign);
  EXPECT_EQ(refused(parcel({block(0, 44)}, fingerprint_, store::Kind::snapshot)),
            PageOutcome::foreign);
}

TEST_F(ImportGates, WhatCannotBeCheckedIsNotTaken) {
  const std::string good = parcel({block(0, 0), block(1, 44)}, fingerprint_);
  gate_.change(fingerprint_, store::Kind::snapshot, std::make_shared<PlaceCheck>());
  EXPECT_EQ(refused(good), PageOutcome::unsupported);
  gate_.change(fingerprint_, store::Kind::blocks, nullptr);
  EXPECT_EQ(refused(good), PageOutcome::unsupported);
  gate_.change(fingerprint_, store::Kind::blocks, std::make_shared<PlaceCheck>());
  EXPECT_TRUE(check(good).ok());
  EXPECT_EQ(refused(""), PageOutcome::no_parcel);
}

}  // namespace
}  // namespace fermata::kv
