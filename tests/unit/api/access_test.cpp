// Which headers carry a key.
#include "api/access.h"

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

bool admits(const Access& access, std::string name, std::string value) {
  Inquiry inquiry;
  inquiry.headers.emplace_back("host", "x");
  inquiry.headers.emplace_back(std::move(name), std::move(value));
  return access.find(inquiry).has_value();
}

TEST(Access, WithoutKeysEverybodyMayAsk) {
  const Access access(std::span<const std::string>{});
  EXPECT_TRUE(access.find(Inquiry{}).has_value());
  EXPECT_TRUE(admits(access, "authorization", "Bearer whatever"));
}

TEST(Access, EachKeyOpensInEachHeader) {
  const std::vector<std::string> keys = {"first", "second key"};
  const Access access(keys);
  for (const std::string& key : keys) {
    EXPECT_TRUE(admits(access, "authorization", "Bearer " + key));
    EXPECT_TRUE(admits(access, "authorization", "bEARER  " + key + " "));
    EXPECT_TRUE(admits(access, "x-api-key", key));
  }
}

TEST(Access, EachKeyIsAnOwnerOfItsOwn) {
  const std::vector<std::string> keys = {"first", "second key"};
  const Access access(keys);
  Inquiry inquiry;
  inquiry.headers.emplace_back("x-api-key", "second key");
  EXPECT_EQ(access.find(inquiry), 1U);
  ASSERT_EQ(access.owners().size(), 2U);
  EXPECT_NE(access.owners()[0], access.owners()[1]);
  EXPECT_NE(access.owners()[0], Owner{});
}

TEST(Access, NothingElseOpens) {
  const std::vector<std::string> keys = {"first", "second key"};
  const Access access(keys);
  EXPECT_FALSE(access.find(Inquiry{}).has_value());
  for (const char* value : {"", "first", "Bearer", "Bearer ", "Bearer firs", "Bearer firstx",
                            "Bearer First", "Basic first", "Bearer first,second key"}) {
    EXPECT_FALSE(admits(access, "authorization", value)) << value;
  }
  EXPECT_FALSE(admits(access, "x-api-key", "Bearer first"));
  EXPECT_FALSE(admits(access, "x-api-key", ""));
  EXPECT_FALSE(admits(access, "cookie", "first"));
}

TEST(Access, AnyOfSeveralHeadersIsEnough) {
  const std::vector<std::string> keys = {"first"};
  const Access access(keys);
  Inquiry inquiry;
  inquiry.headers.emplace_back("authorization", "Bearer wrong");
  EXPECT_FALSE(access.find(inquiry).has_value());
  inquiry.headers.emplace_back("x-api-key", "first");
  EXPECT_TRUE(access.find(inquiry).has_value());
}

}  // namespace
}  // namespace fermata::api
