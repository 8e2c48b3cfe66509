// Who is told that it may read an answer.
#include "http/cors.h"

#include "http/access_log.h"

#include <map>

#include <gtest/gtest.h>

namespace fermata::http {
namespace {

std::map<std::string, std::string> added(const CorsOptions& options, std::string_view origin) {
  HeaderLines lines;
  add_cors(options, origin, lines);
  return {lines.begin(), lines.end()};
}

std::string allowed(const CorsOptions& options, std::string_view origin) {
  return added(options, origin)["Access-Control-Allow-Origin"];
}

TEST(Cors, EverybodyIsAllowedByDefault) {
  const CorsOptions options;
  EXPECT_EQ(allowed(options, ""), "*");
  EXPECT_EQ(allowed(options, "https://a.example"), "https://a.example");
  EXPECT_EQ(added(options, "https://a.example")["Access-Control-Allow-Credentials"], "true");
  EXPECT_EQ(added(options, "https://a.example")["Vary"], "Origin");
  EXPECT_EQ(allowed(options, std::string(1000, 'x')), "*");
}

TEST(Cors, WithoutCredentialsTheAnswerIsTheSameForAll) {
  CorsOptions options;
  options.credentials = false;
  const auto lines = added(options, "https://a.example");
  EXPECT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines.at("Access-Control-Allow-Origin"), "*");
}

TEST(Cors, AListIsMatchedWhole) {
  CorsOptions options;
  options.origins = {"https://a.example", "http://b.example:81"};
  EXPECT_EQ(allowed(options, "http://b.example:81"), "http://b.example:81");
  for (const char* other : {"", "null", "https://a.example.evil", "http://a.example",
                            "http://b.example", "localhost", "http://localhost"}) {
    EXPECT_EQ(allowed(options, other), "") << other;
    EXPECT_EQ(added(options, other)["Vary"], "Origin");
  }
}

TEST(Cors, LocalhostIsThisMachineOnEveryPort) {
  CorsOptions options;
  options.origins = {"localhost"};
  for (const char* own : {"http://localhost", "https://localhost:1", "http://127.0.0.1:3000",
                          "http://[::1]", "http://[::1]:8080"}) {
    EXPECT_EQ(allowed(options, own), own);
  }
  for (const char* other : {"http://localhost.example", "http://example/localhost", "localhost",
                            "http://[::2]", "http://127.0.0.2", "http://", "://", "http://["}) {
    EXPECT_EQ(allowed(options, other), "") << other;
  }
}

TEST(Cors, APreflightGetsTheHeadersItAsksFor) {
  CorsOptions options;
  api::Inquiry inquiry;
  const auto headers_of = [&] {
    const api::Head head = preflight_head(options, inquiry);
    EXPECT_EQ(head.status, 204);
    return std::map<std::string, std::string>(head.headers.begin(), head.headers.end());
  };
  EXPECT_EQ(headers_of()["Access-Control-Allow-Headers"], "*");
  inquiry.headers.emplace_back("access-control-request-headers", "authorization, x-a");
  EXPECT_EQ(headers_of()["Access-Control-Allow-Headers"], "authorization, x-a");
  EXPECT_EQ(headers_of()["Access-Control-Allow-Methods"], "GET, POST, DELETE, OPTIONS");
  options.headers = "Content-Type";
  EXPECT_EQ(headers_of()["Access-Control-Allow-Headers"], "Content-Type");
}

TEST(AccessLog, ALineIsShortAndPlainWhateverTheClientAsked) {
  Visit visit{.method = api::Method::post, .path = "/v1/completions", .status = 200, .bytes = 12};
  EXPECT_EQ(visit_text(visit, Micros(1'260)), "POST /v1/completions 200, 12 bytes, 1.3 ms");
  visit.is_cut = true;
  EXPECT_EQ(visit_text(visit, Micros(0)), "POST /v1/completions 200, 12 bytes, 0.0 ms, cut off");
  visit = {.path = "/a b\n\x1b[1m\xC3\xA4"};
  EXPECT_EQ(visit_text(visit, Micros(0)), "- /a?b??[1m?? -, 0 bytes, 0.0 ms, cut off");
  visit.path = "/" + std::string(100'000, 'x');
  EXPECT_LT(visit_text(visit, Micros(0)).size(), 300U);
}

}  // namespace
}  // namespace fermata::http
