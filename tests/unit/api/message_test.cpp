// A reply that grows, and what each piece adds to its message.
#include "api/message.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

using engine::ReplyParser;

// Thoughts up to "|", content up to "#", then calls: a name, ":", arguments, ";". A "?" anywhere
// makes the text so far unreadable.
class ToyParser final : public ReplyParser {
 public:
  Message parse(const std::string& reply, bool /*partial*/) const override {
    ++parses;
    bytes += reply.size();
    if (reply.find('?') != std::string::npos) return {reply, "", {}};
    Message out;
    std::string rest = reply;
    const std::size_t bar = rest.find('|');
    out.reasoning = rest.substr(0, bar);
    if (bar == std::string::npos) return out;
    rest.erase(0, bar + 1);
    const std::size_t hash = rest.find('#');
    out.content = rest.substr(0, hash);
    while (hash != std::string::npos && !rest.empty()) {
      rest.erase(0, rest.find('#') + 1);
      const std::size_t colon = rest.find(':');
      ToolCall call{"", rest.substr(0, colon), ""};
      if (colon != std::string::npos)
        call.arguments = rest.substr(colon + 1, rest.find('#') - colon - 1);
      out.tool_calls.push_back(call);
      if (rest.find('#') == std::string::npos) break;
    }
    return out;
  }
  bool is_plain() const override { return false; }

  mutable int parses = 0;
  mutable std::size_t bytes = 0;
};

struct Told {
  std::string reasoning, content;
  std::vector<ReplyParser::ToolCall> calls;

  OnDelta listener() {
    return [this](const MessageDelta& delta) {
      switch (delta.kind) {
        case MessageDelta::Kind::reasoning:
          reasoning += delta.text;
          break;
        case MessageDelta::Kind::content:
          content += delta.text;
          break;
        case MessageDelta::Kind::call:
          EXPECT_EQ(delta.call, calls.size());
          calls.push_back({std::string(delta.id), std::string(delta.name), ""});
          break;
        case MessageDelta::Kind::arguments:
          ASSERT_EQ(delta.call + 1, calls.size());
          EXPECT_FALSE(delta.text.empty());
          calls.back().arguments += delta.text;
          break;
      }
    };
  }
};

TEST(GrowingMessage, PiecesOfAnySizeMakeTheWholeMessage) {
  const std::string reply = "so so|look:#weather:{\"city\"}#time:{1, 2}#empty";
  for (std::size_t size = 1; size <= reply.size(); ++size) {
    GrowingMessage message(std::make_shared<ToyParser>());
    Told told;
    for (std::size_t at = 0; at < reply.size(); at += size) {
      message.grow(reply.substr(at, size), told.listener());
    }
    message.finish(told.listener());
    EXPECT_EQ(told.reasoning, "so so");
    EXPECT_EQ(told.content, "look:");
    ASSERT_EQ(told.calls.size(), 3U) << size;
    EXPECT_EQ(told.calls[0].name, "weather");
    EXPECT_EQ(told.calls[0].arguments, "{\"city\"}");
    EXPECT_EQ(told.calls[1].arguments, "{1, 2}");
    EXPECT_EQ(told.calls[2].name, "empty");
    EXPECT_EQ(told.calls[2].arguments, "{}") << "arguments are always JSON";
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(told.calls[i].id.size(), 32U);
      EXPECT_EQ(told.calls[i].id, message.message().tool_calls[i].id);
    }
    EXPECT_NE(told.calls[0].id, told.calls[1].id);
  }
}

TEST(GrowingMessage, WhatWasToldIsNeverTakenBack) {
  GrowingMessage message(std::make_shared<ToyParser>());
  Told told;
  message.grow("hm|yes", told.listener());
  message.grow("?", told.listener());
  message.finish(told.listener());
  EXPECT_EQ(told.reasoning, "hm");
  EXPECT_EQ(told.content, "yes") << "\"hm|yes?\" does not go on from \"yes\"";
}

TEST(GrowingMessage, WithoutAParserAllIsContent) {
  GrowingMessage message(nullptr);
  Told told;
  for (const char* piece : {"so|", "", "#x:y"}) message.grow(piece, told.listener());
  message.finish(told.listener());
  EXPECT_EQ(told.content, "so|#x:y");
  EXPECT_EQ(message.message().content, "so|#x:y");
}

TEST(GrowingMessage, ParsingStaysWithinItsBound) {
  const auto parser = std::make_shared<ToyParser>();
  GrowingMessage message(parser);
  Told told;
  std::size_t bytes = 0;
  message.grow("|", told.listener());
  for (int i = 0; i < 200'000; ++i) {
    message.grow("word ", told.listener());
    bytes += 5;
    if (i == 1000) {
      EXPECT_EQ(parser->parses, 1002) << "a short reply is told piece by piece";
    }
  }
  message.finish(told.listener());
  EXPECT_EQ(told.content.size(), bytes);
  EXPECT_LE(parser->bytes,
            GrowingMessage::parse_bytes_free + (GrowingMessage::parse_growth + 2) * (bytes + 1));
}

TEST(MessageOf, AWholeReplyIsReadAtOnce) {
  const Message message = message_of(ToyParser{}, "a|b#c:");
  EXPECT_EQ(message.reasoning, "a");
  EXPECT_EQ(message.content, "b");
  ASSERT_EQ(message.tool_calls.size(), 1U);
  EXPECT_EQ(message.tool_calls[0].arguments, "{}");
  EXPECT_EQ(message.tool_calls[0].id.size(), 32U);
}

}  // namespace
}  // namespace fermata::api
