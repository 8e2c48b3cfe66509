// Requests from bytes that come in pieces of any size, whole, hostile or broken.
#include "http/request_parser.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fermata::http {
namespace {

constexpr RequestLimits small{.header_bytes_max = 256, .body_bytes_max = 64};
constexpr RequestLimits large{.header_bytes_max = 32 * 1024, .body_bytes_max = 1 << 20};

struct Parsed {
  int refused = 0;  // Status, or 0.
  bool complete = false;
  bool keep_alive = false;
  api::Inquiry inquiry;
  std::size_t taken = 0;
};

// Offers `text` in pieces of the sizes that `next_size` gives, as a connection does.
template <class NextSize>
Parsed parse(std::string_view text, const RequestLimits& limits, NextSize next_size) {
  RequestParser parser(limits);
  Parsed parsed;
  std::size_t arrived = 0;
  while (!parser.complete() && !parser.fault() && arrived < text.size()) {
    arrived = std::min(text.size(), arrived + std::max<std::size_t>(1, next_size()));
    parsed.taken += parser.feed(text.substr(parsed.taken, arrived - parsed.taken));
  }
  parsed.refused = parser.fault() ? parser.fault()->status : 0;
  parsed.complete = parser.complete();
  if (parsed.complete) {
    parsed.keep_alive = parser.keep_alive();
    parsed.inquiry = parser.take_inquiry();
  }
  return parsed;
}

Parsed parse_at_once(std::string_view text, const RequestLimits& limits = large) {
  return parse(text, limits, [&] { return text.size(); });
}
Parsed parse_bytewise(std::string_view text, const RequestLimits& limits = large) {
  return parse(text, limits, [] { return std::size_t{1}; });
}
int refusal_of(std::string_view text, const RequestLimits& limits = large) {
  const int at_once = parse_at_once(text, limits).refused;
  EXPECT_EQ(parse_bytewise(text, limits).refused, at_once) << text;
  return at_once;
}

TEST(RequestParser, HttpOneOneNeedsOneHost) {
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 0);
  EXPECT_EQ(refusal_of("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(refusal_of("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
}

TEST(RequestParser, WhatCannotBeHonouredIsRefused) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n";
  EXPECT_EQ(refusal_of(head + "Expect: the-unexpected\r\n\r\n"), 417);
  EXPECT_EQ(refusal_of(head + "Expect: 100-continue\r\nExpect: more\r\n\r\n"), 417);
  EXPECT_EQ(refusal_of("POST / HTTP/1.0\r\nContent-Length: 0\r\nExpect: x\r\n\r\n"), 0);
  EXPECT_EQ(refusal_of(head + "Content-Encoding: gzip\r\n\r\n"), 415);
  EXPECT_EQ(refusal_of(head + "Content-Encoding: Identity\r\n\r\nx"), 0);
}

TEST(RequestParser, AFaultLeavesWhatWasUnderstood) {
  RequestParser parser(small);
  parser.feed("POST /a?b HTTP/1.1\r\nHost: x\r\nOrigin: http://o\r\nContent-Length: 99\r\n\r\n");
  ASSERT_TRUE(parser.fault());
  EXPECT_EQ(parser.inquiry().method, api::Method::post);
  EXPECT_EQ(parser.inquiry().path, "/a");
  EXPECT_EQ(api::header(parser.inquiry(), "origin"), "http://o");
}

TEST(RequestParser, ReadsAWholeRequestAndLeavesTheNext) {
  const std::string first =
      "POST /v1/x%20y?q=1 HTTP/1.1\r\nHost: h\r\nX-Key: A b\r\n"
      "Content-Length: 4\r\n\r\nbody";
  const Parsed parsed = parse_at_once(first + "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(parsed.complete);
  EXPECT_EQ(parsed.taken, first.size());
  EXPECT_EQ(parsed.inquiry.method, api::Method::post);
  EXPECT_EQ(parsed.inquiry.path, "/v1/x y");
  EXPECT_EQ(parsed.inquiry.query, "q=1");
  EXPECT_EQ(parsed.inquiry.body, "body");
  EXPECT_EQ(api::header(parsed.inquiry, "x-key"), "A b");
  EXPECT_EQ(api::header(parsed.inquiry, "absent"), "");
}

TEST(RequestParser, JoinsChunksAndIgnoresTrailers) {
  const std::string text =
      "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Late: 1\r\n\r\n";
  for (const Parsed& parsed : {parse_at_once(text), parse_bytewise(text)}) {
    ASSERT_TRUE(parsed.complete);
    EXPECT_EQ(parsed.inquiry.body, "abcde");
    EXPECT_EQ(api::header(parsed.inquiry, "x-late"), "");
  }
}

TEST(RequestParser, HowTheBytesAreCutDoesNotMatter) {
  const std::string text = "POST /a?b HTTP/1.1\r\nHost: h\r\nX-Long: " + std::string(300, 'v') +
                           "\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "a\r\n0123456789\r\n5;x=y\r\nabcde\r\n0\r\nT: 1\r\n\r\n";
  const Parsed whole = parse_at_once(text);
  rc::check([&] {
    const Parsed cut =
        parse(text, large, [] { return static_cast<std::size_t>(*rc::gen::inRange(1, 40)); });
    RC_ASSERT(cut.complete);
    RC_ASSERT(cut.taken == text.size());
    RC_ASSERT(cut.inquiry.path == whole.inquiry.path);
    RC_ASSERT(cut.inquiry.headers == whole.inquiry.headers);
    RC_ASSERT(cut.inquiry.body == "0123456789abcde");
  });
}

TEST(RequestParser, KnowsWhetherTheConnectionStays) {
  EXPECT_TRUE(parse_at_once("GET / HTTP/1.1\r\nHost: x\r\n\r\n").keep_alive);
  EXPECT_FALSE(parse_at_once("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").keep_alive);
  EXPECT_FALSE(parse_at_once("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(parse_at_once("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
}

TEST(RequestParser, MethodsOutsideTheListAreOther) {
  EXPECT_EQ(parse_at_once("PATCH / HTTP/1.1\r\nHost: x\r\n\r\n").inquiry.method,
            api::Method::other);
  EXPECT_EQ(parse_at_once("BREW / HTTP/1.1\r\nHost: x\r\n\r\n").inquiry.method, api::Method::other);
  EXPECT_EQ(parse_at_once("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").inquiry.method,
            api::Method::options);
}

TEST(RequestParser, RefusesMalformedRequests) {
  for (const char* text : {
           "\x16\x03\x01\x02 not plain\r\n\r\n",                        // TLS to a plain port
           "GET /\r\n\r\n",                                             // no version
           "GET health HTTP/1.1\r\nHost: x\r\n\r\n",                    // no path
           "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",                      // broken code
           "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",             // broken header
           "GET / HTTP/1.1\r\nHost: x\r\nName : space\r\n\r\n",         // smuggling
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",   // no number
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",  // negative
           "POST / HTTP/1.1\r\nHost: x\r\n"
           "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",  // two answers
           "POST / HTTP/1.1\r\nHost: x\r\n"
           "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\n"
           "Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n\r\n",  // no size
       }) {
    EXPECT_EQ(refusal_of(text), 400) << text;
  }
}

TEST(RequestParser, RefusesWhatItDoesNotSpeak) {
  EXPECT_EQ(refusal_of("PRI * HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"), 501);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n"),
            501);
}

TEST(RequestParser, HeadersHaveOneLimitInWholeHoweverTheyCome) {
  std::string text = "GET / HTTP/1.1\r\nHost: x\r\n";
  while (text.size() < 300) text += "X-Header: value\r\n";
  EXPECT_EQ(refusal_of(text + "\r\n", small), 431);
  EXPECT_EQ(refusal_of("GET /" + std::string(300, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", small),
            431);
  const std::string fits = "GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(200, 'v') + "\r\n\r\n";
  EXPECT_EQ(refusal_of(fits, small), 0);
}

TEST(RequestParser, BodiesHaveALimitThatAnAnnouncementReachesToo) {
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 64\r\n\r\n", small), 0);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 65\r\n\r\n", small), 413);
  EXPECT_EQ(
      refusal_of("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n"),
      413);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string chunk = "20\r\n" + std::string(32, 'x') + "\r\n";
  EXPECT_EQ(refusal_of(chunked + chunk + chunk, small), 0);
  EXPECT_EQ(refusal_of(chunked + chunk + chunk + "1\r\n", small), 413);
}

TEST(RequestParser, ChunkLinesAndTrailersAreBounded) {
  const std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(refusal_of(chunked + "1;" + std::string(600, 'x'), small), 400);
  EXPECT_EQ(refusal_of(chunked + "0\r\nT: " + std::string(600, 'x'), small), 400);
}

TEST(RequestParser, AsksForTheBodyOnlyWhileNothingOfItHasCome) {
  const std::string head =
      "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  RequestParser waiting(large);
  waiting.feed(head);
  EXPECT_TRUE(waiting.awaits_continue());
  RequestParser impatient(large);
  impatient.feed(head + "a");
  EXPECT_FALSE(impatient.awaits_continue());
}

TEST(RequestParser, NoBytesBreakIt) {
  rc::check([] {
    // Pieces of real requests in wild order reach deeper than noise does.
    const auto piece = rc::gen::oneOf(
        rc::gen::element<std::string>("GET / HTTP/1.1\r\nHost: x\r\n", "POST /a?b HTTP/1.0\r\n",
                                      "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n",
                                      "Connection: close, x\r\n", "Expect: 100-continue\r\n",
                                      "\r\n", "5\r\nabcde\r\n", "0\r\n", "ffffffffffffffff\r\n",
                                      " folded\r\n", ":", "\r", "\n"),
        rc::gen::arbitrary<std::string>());
    std::string text;
    for (const std::string& part : *rc::gen::container<std::vector<std::string>>(piece))
      text += part;
    const Parsed parsed =
        parse(text, small, [] { return static_cast<std::size_t>(*rc::gen::inRange(1, 20)); });
    RC_ASSERT(parsed.taken <= text.size());
    RC_ASSERT(!(parsed.complete && parsed.refused != 0));
    RC_ASSERT(parsed.inquiry.body.size() <= small.body_bytes_max);
  });
}

}  // namespace
}  // namespace fermata::http
