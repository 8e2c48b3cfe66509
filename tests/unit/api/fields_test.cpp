// Reading what clients send: every mistake names its field.
#include "api/fields.h"

#include <functional>

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

std::string message_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const ApiError& error) {
    EXPECT_EQ(status_of(error.type), 400);
    return error.message;
  }
  return "no error";
}

TEST(Fields, NullAndAbsentMeanTheDefault) {
  const Json object = parse_object(R"({"a": null, "b": 7})");
  const Fields fields(object);
  EXPECT_EQ(fields.integer("a", 3, 0, 10), 3);
  EXPECT_EQ(fields.integer("c", 4, 0, 10), 4);
  EXPECT_EQ(fields.integer("b", 4, 0, 10), 7);
  EXPECT_TRUE(fields.boolean("a", true));
  EXPECT_EQ(fields.string("a", "x"), "x");
}

TEST(Fields, MistakesNameTheField) {
  const Json object = parse_object(
      R"({"half": 1.5, "huge": 18446744073709551616, "word": "x", "list": [1], "big": 1e300})");
  const Fields fields(object);
  for (const char* name : {"half", "huge", "word", "list", "big"}) {
    const std::string message = message_of([&] { (void)fields.integer(name, 0, 0, 100); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
  EXPECT_NE(message_of([&] { (void)fields.strings("list", {}, 5); }).find("list"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)fields.number("word", 0, 0, 1); }).find("word"),
            std::string::npos);
}

TEST(Fields, WholeNumbersMayBeWrittenAsFloats) {
  const Json object = parse_object(R"({"n": 5.0})");
  EXPECT_EQ(Fields(object).integer("n", 0, 0, 10), 5);
}

TEST(ParseObject, RefusesWhatIsNoObject) {
  for (const char* body : {"", "[]", "5", "null", "\"x\"", "{", "{\"a\":1,}", "\xff\xfe"}) {
    EXPECT_NE(message_of([&] { (void)parse_object(body); }), "no error") << body;
  }
  EXPECT_NE(message_of([] { (void)parse_object(R"({"a":"\ud83d"})"); }), "no error");
  // F3: text after a NUL was silently dropped.
  for (const std::string& body : {std::string("{}\0", 3), std::string("{}\0garbage", 10)}) {
    EXPECT_NE(message_of([&] { (void)parse_object(body); }).find("NUL"), std::string::npos);
  }
}

// The parser's own words told of exceptions and numbered errors.
TEST(ParseObject, SaysWhereAndWhatInWordsOfJson) {
  const auto message = [](const char* body) {
    return message_of([&] { (void)parse_object(body); });
  };
  EXPECT_EQ(message("{\n  \"a\": x}"),
            "the body is not valid JSON at line 2, column 8: unexpected text");
  EXPECT_TRUE(message("{\"a\": 1").ends_with(": it ends too early"));
  EXPECT_TRUE(message("{\"a\": 1e999}").ends_with(": a number is too large"));
  EXPECT_TRUE(message("{\"a\": \"\xC0\xAF\"}").ends_with(": text that is not UTF-8"));
  EXPECT_TRUE(message("{\"a\": \"\\ud83d\"}").ends_with(": half of a surrogate pair"));
  for (const char* body : {"", "{", "{\"a\":NaN}", "[1,]", "{\"a\": \"\n\"}", "\xff\xfe"}) {
    for (const char* inside : {"exception", "parse_error", "nlohmann", "last read"}) {
      EXPECT_EQ(message(body).find(inside), std::string::npos) << message(body);
    }
  }
}

TEST(Fields, APrefixStandsBeforeTheName) {
  const Json object = parse_object(R"({"include_usage": 5})");
  const Fields fields(object, "stream_options.");
  EXPECT_TRUE(message_of([&] {
                (void)fields.boolean("include_usage", false);
              }).starts_with("stream_options.include_usage: "));
}

TEST(ParseObject, LimitsDepthButNotBracketsInText) {
  const std::string deep(200, '[');
  EXPECT_NE(message_of([&] { (void)parse_object("{\"a\":" + deep); }).find("deep"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { (void)parse_object("{\"a\":\"" + deep + "\"}"); }), "no error");
}

TEST(AppendQuoted, AgreesWithTheJsonLibrary) {
  std::string every;
  for (int c = 0; c < 0x80; ++c) every += static_cast<char>(c);
  every += "é日🎼";
  std::string quoted;
  append_quoted(quoted, every);
  EXPECT_EQ(Json::parse(quoted).get<std::string>(), every);
}

TEST(Errors, HaveTheDocumentedShape) {
  const Json plain = Json::parse(error_json(bad_request("x: no")));
  EXPECT_EQ(plain["error"]["code"], 400);
  EXPECT_EQ(plain["error"]["type"], "invalid_request_error");
  const Json window = Json::parse(error_json(exceeds_context(Tokens(9), Tokens(5))));
  EXPECT_EQ(window["error"]["type"], "exceed_context_size_error");
  EXPECT_EQ(window["error"]["n_prompt_tokens"], 9);
  EXPECT_EQ(window["error"]["n_ctx"], 5);
  EXPECT_EQ(window["error"]["message"],
            "request (9 tokens) exceeds the available context size (5 tokens), try increasing it");
}

}  // namespace
}  // namespace fermata::api
