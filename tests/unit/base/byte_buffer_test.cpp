// Large buffers: aligned for huge pages, not cleared, refused without an exception.
#include "base/byte_buffer.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(ByteBuffer, SmallAndLargeOnesHoldWhatIsWritten) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4097}, (std::size_t{2} << 20) - 1,
                                 std::size_t{2} << 20, (std::size_t{5} << 20) + 17}) {
    ByteBuffer buffer;
    ASSERT_TRUE(resize(buffer, size));
    ASSERT_EQ(buffer.size(), size);
    buffer.front() = std::byte{1};
    buffer.back() = std::byte{2};
    const ByteBuffer copy = buffer;
    EXPECT_EQ(copy.back(), std::byte{2});
    if (size >= std::size_t{2} << 20) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (std::size_t{2} << 20), 0U);
    }
  }
}

TEST(ByteBuffer, GrowingWithinItsCapacityKeepsTheMemory) {
  ByteBuffer buffer;
  ASSERT_TRUE(resize(buffer, 1000));
  const std::byte* memory = buffer.data();
  buffer[999] = std::byte{7};
  ASSERT_TRUE(resize(buffer, 10));
  ASSERT_TRUE(resize(buffer, 1000));
  EXPECT_EQ(buffer.data(), memory);
  EXPECT_EQ(buffer[999], std::byte{7}) << "it was not cleared";
}

TEST(ByteBuffer, TooLargeIsRefused) {
  ByteBuffer buffer;
  EXPECT_FALSE(resize(buffer, std::numeric_limits<std::size_t>::max()));
  EXPECT_FALSE(resize(buffer, std::size_t{1} << 50));
  EXPECT_TRUE(resize(buffer, 100));
}

}  // namespace
}  // namespace fermata
