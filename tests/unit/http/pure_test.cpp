// Targets and heads: text in, text out.
#include "http/response.h"
#include "http/target.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fermata::http {
namespace {

std::string path_of(std::string_view raw) {
  const std::optional<Target> target = parse_target(raw);
  return target ? target->path : "malformed";
}

TEST(Target, DecodesThePathAndKeepsTheQueryAsItCame) {
  const std::optional<Target> target = parse_target("/a%20b%2Fc+d?x=%20&y=1?2");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/a b/c+d");
  EXPECT_EQ(target->query, "x=%20&y=1?2");
}

TEST(Target, TakesTheFormsThatProxiesSend) {
  EXPECT_EQ(path_of("http://host:80/v1/models"), "/v1/models");
  EXPECT_EQ(path_of("https://host"), "/");
  EXPECT_EQ(path_of("http://host?a=/b"), "/");
  EXPECT_EQ(path_of("*"), "*");
}

TEST(Target, RefusesWhatIsNone) {
  for (const char* raw :
       {"", "health", "?q", "host:443", "/%", "/%4", "/%zz", "/a%00b", "ftp://h/"}) {
    EXPECT_FALSE(parse_target(raw)) << raw;
  }
}

TEST(Target, AnyPathSurvivesEncoding) {
  rc::check([](const std::string& text) {
    constexpr char digits[] = "0123456789abcdef";
    std::string path = "/";
    std::string encoded = "/";
    for (const char c : text) {
      if (c == '\0') continue;
      path.push_back(c);
      encoded.push_back('%');
      encoded.push_back(digits[static_cast<unsigned char>(c) / 16]);
      encoded.push_back(digits[static_cast<unsigned char>(c) % 16]);
    }
    RC_ASSERT(path_of(encoded) == path);
  });
}

TEST(Prefix, IsTakenOffAtWholeSegmentsOnly) {
  EXPECT_EQ(strip_prefix("/api/health", "/api"), "/health");
  EXPECT_EQ(strip_prefix("/api", "/api"), "/");
  EXPECT_EQ(strip_prefix("/apihealth", "/api"), std::nullopt);
  EXPECT_EQ(strip_prefix("/health", "/api"), std::nullopt);
  EXPECT_EQ(strip_prefix("*", "/api"), "*");
  EXPECT_EQ(strip_prefix("/health", ""), "/health");
}

TEST(Head, SaysHowTheBodyEnds) {
  const api::Head head;
  const auto text = [&](const HeadFrame& frame) { return format_head(head, frame, "llama.cpp"); };
  EXPECT_EQ(text({.framing = Framing::length, .length = 5}),
            "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\n"
            "Content-Type: application/json; charset=utf-8\r\nContent-Length: 5\r\n\r\n");
  EXPECT_NE(text({.framing = Framing::chunked}).find("\r\nTransfer-Encoding: chunked\r\n"),
            std::string::npos);
  EXPECT_NE(text({.keep_alive = false}).find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_NE(text({.http_1_0 = true}).find("\r\nConnection: keep-alive\r\n"), std::string::npos);
}

TEST(Head, AHeaderCannotStartAnother) {
  api::Head head;
  head.headers.emplace_back("X-Echo", "a\r\nSet-Cookie: b");
  const std::string text = format_head(head, {}, "llama.cpp");
  EXPECT_EQ(text.find("\r\nSet-Cookie"), std::string::npos);
  EXPECT_NE(text.find("\r\nX-Echo: a  Set-Cookie: b\r\n"), std::string::npos);
}

TEST(Refusal, HasTheErrorShapeOfTheApi) {
  const Refusal refusal{
      .status = 503, .type = "unavailable_error", .message = "busy", .retry_after_seconds = 2};
  EXPECT_EQ(refusal_body(refusal),
            R"({"error":{"code":503,"message":"busy","type":"unavailable_error"}})");
  const std::string head = format_head(refusal_head(refusal), {}, "llama.cpp");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_NE(head.find("\r\nRetry-After: 2\r\n"), std::string::npos);
}

}  // namespace
}  // namespace fermata::http
