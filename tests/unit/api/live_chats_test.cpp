#include "api/live_chats.h"

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

using Outcome = LiveChats::Outcome;

TEST(LiveChats, AreFoundByIdAndOwnerWhileTheyLast) {
  LiveChats chats;
  const Owner mine{std::byte{1}}, other{std::byte{2}};
  const EndThoughts flag = std::make_shared<std::atomic<bool>>(false);
  auto armed = chats.add("a", mine, flag);
  const auto plain = chats.add("b", mine, nullptr);
  EXPECT_EQ(chats.end_thoughts("c", mine), Outcome::nobody_there);
  EXPECT_EQ(chats.end_thoughts("b", mine), Outcome::not_enabled);
  EXPECT_EQ(chats.end_thoughts("a", other), Outcome::nobody_there);
  EXPECT_FALSE(flag->load());
  EXPECT_EQ(chats.end_thoughts("a", mine), Outcome::done);
  EXPECT_TRUE(flag->load());
  EXPECT_EQ(chats.end_thoughts("a", mine), Outcome::done);
  armed.reset();
  EXPECT_EQ(chats.end_thoughts("a", mine), Outcome::nobody_there);
}

}  // namespace
}  // namespace fermata::api
