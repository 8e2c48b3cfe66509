// Requests and answers over real sockets: keep-alive, framing, versions, methods, prefixes.
#include "unit/http/rig.h"

namespace fermata::http {
namespace {

class Requests : public HttpTest {};

TEST_F(Requests, OneConnectionServesManyAndOutlivesErrors) {
  options.api_prefix = "/api";
  listen();
  RawClient client(port());
  for (int i = 0; i < 50; ++i) {
    client.send(request_text("POST", "/api/cheap/a%20b?x=%20", "body"));
    const RawAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "POST /cheap/a b?x=%20|body");
    client.send(request_text("GET", "/elsewhere"));
    const RawAnswer missing = client.read_answer();
    EXPECT_EQ(missing.status, 404);
    EXPECT_EQ(missing.body,
              R"({"error":{"code":404,"message":"File Not Found","type":"not_found_error"}})");
    client.send(request_text("POST", "/api/echo", "worker"));
    EXPECT_EQ(client.read_answer().body, "POST /echo|worker");
  }
  EXPECT_EQ(stats().connections_total.value(), 1U);
  EXPECT_EQ(stats().answers[1].value(), 100U);
  EXPECT_EQ(stats().answers[3].value(), 50U);
}

TEST_F(Requests, TheHeadNamesServerTypeAndLength) {
  listen();
  RawClient client(port());
  client.send(request_text("GET", "/cheap/"));
  const RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.headers.at("server"), "llama.cpp");
  EXPECT_EQ(answer.headers.at("content-type"), "application/json; charset=utf-8");
  EXPECT_EQ(answer.headers.at("content-length"), std::to_string(answer.body.size()));
}

TEST_F(Requests, EveryMethodReachesTheService) {
  listen();
  RawClient client(port());
  for (const std::string method : {"GET", "POST", "PUT", "DELETE"}) {
    client.send(request_text(method, "/cheap/"));
    EXPECT_EQ(client.read_answer().body, method + " /cheap/|");
  }
  client.send(request_text("PROPFIND", "/cheap/"));
  EXPECT_EQ(client.read_answer().body, "- /cheap/|");
}

TEST_F(Requests, OptionsIsAnsweredBeforeTheService) {
  options.api_prefix = "/prefix";
  listen();
  RawClient client(port());
  for (const std::string target : {"/cheap/", "/prefix/scripted", "*"}) {
    client.send(request_text("OPTIONS", target, "", "Origin: http://o\r\n"));
    const RawAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 204);
    EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "http://o");
    EXPECT_TRUE(answer.headers.contains("access-control-allow-methods"));
  }
  client.send(request_text("GET", "/prefix/cheap/"));
  EXPECT_EQ(client.read_answer().headers.at("access-control-allow-origin"), "*");
  EXPECT_EQ(service.begun(), 1);
}

TEST_F(Requests, HeadGetsTheHeadOnly) {
  listen();
  RawClient client(port());
  client.send(request_text("HEAD", "/cheap/"));
  const RawAnswer answer = client.read_answer(true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("content-length"), "13");  // "HEAD /cheap/|"
  client.send(request_text("GET", "/cheap/next"));       // No body was in between.
  EXPECT_EQ(client.read_answer().body, "GET /cheap/next|");
}

TEST_F(Requests, HeadOfAStreamEndsTheExchange) {
  listen();
  RawClient client(port());
  client.send(request_text("HEAD", "/scripted"));
  const auto script = service.next_script();
  script->push(stream_head());
  EXPECT_EQ(client.read_answer(true).headers.at("transfer-encoding"), "chunked");
  EXPECT_TRUE(script->wait_destroyed());
  client.send(request_text("GET", "/cheap/next"));
  EXPECT_EQ(client.read_answer().body, "GET /cheap/next|");
}

TEST_F(Requests, AStatusWithoutBodyHasNone) {
  listen();
  RawClient client(port());
  client.send(request_text("DELETE", "/scripted"));
  service.next_script()->push(whole_answer(204, ""));
  const RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.status, 204);
  EXPECT_FALSE(answer.headers.contains("content-length"));
  client.send(request_text("GET", "/cheap/next"));
  EXPECT_EQ(client.read_answer().body, "GET /cheap/next|");
}

TEST_F(Requests, PipelinedRequestsAreAnsweredInOrder) {
  listen();
  RawClient client(port());
  std::string all = request_text("POST", "/echo", "first") + request_text("GET", "/scripted");
  for (int i = 0; i < 20; ++i) all += "\r\n" + request_text("GET", "/cheap/" + std::to_string(i));
  client.send(all);
  EXPECT_EQ(client.read_answer().body, "POST /echo|first");
  const auto script = service.next_script();
  script->push(stream_head());
  script->push_text("in between");
  script->push(last_piece());
  EXPECT_EQ(client.read_answer().body, "in between");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.read_answer().body, "GET /cheap/" + std::to_string(i) + "|");
  }
}

TEST_F(Requests, BytesSentEarlyDuringAStreamAreNotLost) {
  listen();
  RawClient client(port());
  client.send(request_text("GET", "/scripted"));
  const auto script = service.next_script();
  script->push(stream_head());
  EXPECT_TRUE(client.read_head().whole);
  // Longer than what is read ahead, so part of it waits in the kernel.
  const std::string body(100'000, 'b');
  ASSERT_TRUE(client.send(request_text("POST", "/echo", body)));
  script->push_text("x");
  EXPECT_EQ(client.read_chunk(), "x");
  script->push(last_piece());
  EXPECT_EQ(client.read_chunk(), "");
  EXPECT_EQ(client.read_answer().body, "POST /echo|" + body);
}

TEST_F(Requests, ConnectionCloseIsHonouredForWholeAnswersAndStreams) {
  listen();
  RawClient whole(port());
  whole.send(request_text("GET", "/cheap/", "", "Connection: close\r\n"));
  EXPECT_EQ(whole.read_answer().headers.at("connection"), "close");
  EXPECT_TRUE(whole.at_end());

  RawClient stream(port());
  stream.send(request_text("GET", "/scripted", "", "Connection: close\r\n"));
  const auto script = service.next_script();
  script->push(stream_head());
  script->push(last_piece("all"));
  const RawAnswer answer = stream.read_answer();
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body, "all");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(stream.at_end());
}

TEST_F(Requests, Http10ClosesUnlessAskedToStay) {
  listen();
  RawClient closing(port());
  closing.send("GET /cheap/ HTTP/1.0\r\n\r\n");
  EXPECT_EQ(closing.read_answer().body, "GET /cheap/|");
  EXPECT_TRUE(closing.at_end());

  RawClient staying(port());
  for (int i = 0; i < 3; ++i) {
    staying.send("GET /cheap/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const RawAnswer answer = staying.read_answer();
    EXPECT_EQ(answer.body, "GET /cheap/|");
    EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
  }
}

TEST_F(Requests, Http10StreamsEndWithTheConnection) {
  listen();
  RawClient client(port());
  client.send("GET /scripted HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto script = service.next_script();
  script->push(stream_head());
  const RawAnswer head = client.read_head();
  EXPECT_FALSE(head.headers.contains("transfer-encoding"));
  EXPECT_EQ(head.headers.at("connection"), "close");
  script->push_text("data: 1\n\n");
  script->push(last_piece("data: 2\n\n"));
  EXPECT_EQ(client.read_rest(), "data: 1\n\ndata: 2\n\n");
}

TEST_F(Requests, ExpectContinueIsAnsweredBeforeTheBody) {
  listen();
  RawClient client(port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  const RawAnswer go_on = client.read_head();
  EXPECT_EQ(go_on.status, 100);
  EXPECT_TRUE(go_on.headers.empty());
  client.send("body");
  EXPECT_EQ(client.read_answer().body, "POST /echo|body");
}

TEST_F(Requests, ChunkedBodiesArrive) {
  listen();
  RawClient client(port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  client.send("6\r\n world\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_answer().body, "POST /echo|hello world");
}

TEST_F(Requests, LargeBodiesGoBothWays) {
  listen();
  RawClient client(port());
  const std::string body(20'000'000, 'm');
  ASSERT_TRUE(client.send(request_text("POST", "/echo", body)));
  EXPECT_EQ(client.read_answer().body, "POST /echo|" + body);
  client.send(request_text("GET", "/cheap/next"));
  EXPECT_EQ(client.read_answer().body, "GET /cheap/next|");
}

TEST_F(Requests, ManyConnectionsOnSeveralEventLoops) {
  options.io_threads = 2;
  listen();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(std::make_unique<RawClient>(port()));
  for (int round = 0; round < 5; ++round) {
    for (const auto& client : clients) client->send(request_text("POST", "/echo", "x"));
    for (const auto& client : clients) EXPECT_EQ(client->read_answer().body, "POST /echo|x");
  }
  EXPECT_EQ(stats().connections_open.value(), 50);
  clients.clear();
  EXPECT_TRUE(all_closed());
}

}  // namespace
}  // namespace fermata::http
