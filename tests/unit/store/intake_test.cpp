// A block that arrives in pieces is the same block.
#include "store/intake.h"

#include "base/random.h"

#include <vector>

#include <gtest/gtest.h>

namespace fermata::store {
namespace {

TEST(Intake, PiecesOfAnySizeGiveTheIdOfTheWhole) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(random.between(1, 3000)));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random.between(0, 255));
    Fingerprint fingerprint{};
    fingerprint[0] = static_cast<std::byte>(random.between(0, 255));
    Intake intake(fingerprint, bytes);
    std::size_t came = 0;
    while (random.chance(80)) {
      came += static_cast<std::size_t>(
          random.between(0, static_cast<std::int64_t>(bytes.size() - came)));
      intake.came(came);
    }
    EXPECT_EQ(intake.id(), content_id(fingerprint, bytes));
  }
}

TEST(Intake, WhatNobodyToldOfIsHashedAsItIsAtTheEnd) {
  std::vector<std::byte> bytes(1000);
  Intake intake({}, bytes);
  intake.came(400);
  bytes[999] = std::byte{1};
  EXPECT_EQ(intake.id(), content_id({}, bytes));
}

}  // namespace
}  // namespace fermata::store
