// What the page of a conversation is called.
#include "api/conversation.h"

#include "api/error.h"
#include "core/pages.h"

#include <string>

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

TEST(Conversation, ItsPageIsItsIdOrTheDigestOfIt) {
  EXPECT_EQ(page_of_conversation("chat"), "chat");
  EXPECT_EQ(page_of_conversation("chat::model"), "chat");
  EXPECT_EQ(page_of_conversation("a::b::model"), page_of_conversation("a::b::other"));
  for (const std::string id : {"../x", "two words", "id.1", ".x", "\xFF\xFE"}) {
    const std::string name = page_of_conversation(id);
    EXPECT_TRUE(name.starts_with("sha256-")) << name;
    EXPECT_TRUE(may_name_page(name)) << name;
  }
  EXPECT_THROW(page_of_conversation("::model"), ApiError);
}

TEST(Conversation, TheHeaderCountsMoreThanTheBody) {
  Json body = {{"conversation", "body"}};
  EXPECT_EQ(read_conversation(Fields(body)), "body");
  Inquiry inquiry;
  inquiry.headers = {{"x-conversation-id", "header"}};
  take_conversation_header(inquiry, body);
  EXPECT_EQ(read_conversation(Fields(body)), "header");
  EXPECT_EQ(read_conversation(Fields(Json::object())), "");
}

TEST(Conversation, AnIdHas1To256Bytes) {
  for (const Json& id : {Json(""), Json(std::string(257, 'x')), Json(5)}) {
    const Json body = {{"conversation", id}};
    EXPECT_THROW(read_conversation(Fields(body)), ApiError) << id;
  }
}

}  // namespace
}  // namespace fermata::api
