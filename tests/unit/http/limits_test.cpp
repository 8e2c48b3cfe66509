// Limits of size, time and number, each with its named answer.
#include "http/body_budget.h"
#include "unit/http/rig.h"

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

namespace fermata::http {
namespace {

class Limits : public HttpTest {
 protected:
  static void expect_error(const RawAnswer& answer, int code, const std::string& type) {
    EXPECT_EQ(answer.status, code);
    const nlohmann::json body = nlohmann::json::parse(answer.body, nullptr, false);
    ASSERT_TRUE(body.contains("error")) << answer.body;
    EXPECT_EQ(body["error"]["code"], code);
    EXPECT_EQ(body["error"]["type"], type);
    EXPECT_FALSE(body["error"]["message"].get<std::string>().empty());
  }
};

TEST_F(Limits, AHugeContentLengthIsRefusedBeforeTheBodyIsRead) {
  listen();
  RawClient client(port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
      "2147483648\r\n\r\n");
  const RawAnswer answer = client.read_answer();
  expect_error(answer, 413, "invalid_request_error");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(service.begun(), 0);
}

TEST_F(Limits, TheRefusalArrivesThoughTheClientKeepsSending) {
  options.body_max = Bytes(1000);
  listen();
  RawClient client(port());
  const std::string body(20'000'000, 'x');
  // Many clients look for an answer only after they could send everything.
  EXPECT_TRUE(client.send(request_text("POST", "/echo", body)));
  expect_error(client.read_answer(), 413, "invalid_request_error");
  EXPECT_TRUE(client.at_end());
}

TEST_F(Limits, AChunkedBodyHasTheSameLimit) {
  options.body_max = Bytes(1000);
  listen();
  RawClient client(port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200\r\n");
  client.send(std::string(512, 'x') + "\r\n200\r\n");
  expect_error(client.read_answer(), 413, "invalid_request_error");
  EXPECT_TRUE(client.at_end());
}

TEST_F(Limits, HeadersTooLarge) {
  options.header_max = Bytes(1024);
  listen();
  RawClient client(port());
  client.send("GET /cheap HTTP/1.1\r\nHost: x\r\n");
  for (int i = 0; i < 100; ++i) client.send("X-Header-" + std::to_string(i) + ": value\r\n");
  expect_error(client.read_answer(), 431, "invalid_request_error");
  EXPECT_TRUE(client.at_end());
}

TEST_F(Limits, MalformedRequestsAreNamedAndEndTheConnection) {
  listen();
  for (const std::string text :
       {"\x16\x03\x01\r\n\r\n", "NONSENSE\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nbroken header\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: twelve\r\n\r\n"}) {
    RawClient client(port());
    client.send(text);
    expect_error(client.read_answer(), 400, "invalid_request_error");
    EXPECT_TRUE(client.at_end());
  }
  EXPECT_TRUE(all_closed());
}

TEST_F(Limits, AHeadThatNeverEndsIsTimedOutHoweverItTrickles) {
  listen();
  RawClient client(port());
  client.send("GET /cheap HTTP/1.1\r\nHost: x\r\n");
  int lines = 0;
  ASSERT_TRUE(pass_time_until([&] {
    // One more line per second does not help; too many would be another fault.
    if (++lines < 30) client.send("X: y\r\n");
    return stats().answers[3].value() == 1;
  }));
  expect_error(client.read_answer(), 408, "invalid_request_error");
}

TEST_F(Limits, ABodyThatNeverEndsIsTimedOutHoweverItTrickles) {
  listen();
  RawClient client(port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nonly this");
  ASSERT_TRUE(pass_time_until([&] {
    client.send(".");  // One more byte per second does not help.
    return stats().answers[3].value() == 1;
  }));
  expect_error(client.read_answer(), 408, "invalid_request_error");
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(service.begun(), 0);
}

TEST_F(Limits, ASlowBodyThatMakesProgressIsNot) {
  listen();
  RawClient client(port());
  const std::string part(20'000, 'p');
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n");
  for (std::size_t sent = part.size(); sent <= 200'000; sent += part.size()) {
    clock.advance(second * 500);  // Ten parts: beyond one timeout in all.
    client.send(part);
    const auto arrived = static_cast<std::int64_t>(sent);
    if (sent > BodyCharge::free_bytes && sent < 200'000) {
      ASSERT_TRUE(eventually([&] { return stats().body_bytes.value() == arrived; }));
      ASSERT_TRUE(time_is_seen());
    }
  }
  EXPECT_EQ(client.read_answer().body.size(), 200'000 + std::string("POST /echo|").size());
}

TEST_F(Limits, AnIdleConnectionEndsSilently) {
  listen();
  RawClient fresh(port());
  RawClient used(port());
  used.send(request_text("GET", "/cheap/"));
  EXPECT_EQ(used.read_answer().status, 200);
  ASSERT_TRUE(eventually([this] { return stats().connections_open.value() == 2; }));
  ASSERT_TRUE(pass_time_until([this] { return stats().connections_open.value() == 0; }));
  EXPECT_TRUE(fresh.at_end());
  EXPECT_TRUE(used.at_end());
}

TEST_F(Limits, AnAnswerInTheMakingIsNotTimedOut) {
  listen();
  RawClient idle(port());
  RawClient client(port());
  client.send(request_text("POST", "/scripted", "{}"));
  const auto script = service.next_script();
  ASSERT_TRUE(eventually([this] { return stats().connections_open.value() == 2; }));
  ASSERT_TRUE(pass_time_until([this] { return stats().connections_open.value() == 1; }));
  clock.advance(second * 100'000);
  ASSERT_TRUE(time_is_seen());
  script->push(whole_answer(200, "late"));
  EXPECT_EQ(client.read_answer().body, "late");
}

TEST_F(Limits, AClientThatTakesNothingIsGivenUp) {
  listen();
  RawClient client(port(), 4096);
  client.send(request_text("POST", "/scripted", "{}"));
  const auto script = service.next_script();
  script->push(stream_head());
  script->push_text(std::string(32'000'000, 'f'));
  ASSERT_TRUE(script->wait_pulled(2));
  ASSERT_TRUE(pass_time_until([&] { return stats().requests_abandoned.value() == 1; }));
  EXPECT_TRUE(script->wait_destroyed());
  EXPECT_TRUE(all_closed());
}

TEST_F(Limits, LargeBodiesShareABudgetAndSmallOnesPassIt) {
  options.bodies_max = Bytes(250'000);
  listen();
  const std::string body(200'000, 'b');
  const std::string request = request_text("POST", "/echo", body);
  RawClient first(port());
  first.send(std::string_view(request).substr(0, request.size() - 1));
  ASSERT_TRUE(eventually([&] { return stats().body_bytes.value() >= 199'000; }));
  RawClient second_large(port());
  second_large.send(request);
  const RawAnswer answer = second_large.read_answer();
  expect_error(answer, 503, "unavailable_error");
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  EXPECT_TRUE(second_large.at_end());
  RawClient small(port());
  small.send(request_text("POST", "/echo", std::string(60'000, 's')));
  EXPECT_EQ(small.read_answer().status, 200);
  first.send("b");
  EXPECT_EQ(first.read_answer().body, "POST /echo|" + body);
  EXPECT_TRUE(eventually([&] { return stats().body_bytes.value() == 0; }));
}

TEST_F(Limits, ConnectionsBeyondTheLimitAreToldSo) {
  options.connections_max = 2;
  listen();
  RawClient first(port());
  RawClient second_client(port());
  for (RawClient* client : {&first, &second_client}) {
    client->send(request_text("GET", "/cheap/"));
    EXPECT_EQ(client->read_answer().status, 200);
  }
  {
    RawClient third(port());
    third.send(request_text("GET", "/cheap/"));
    const RawAnswer answer = third.read_answer();
    expect_error(answer, 503, "unavailable_error");
    EXPECT_EQ(answer.headers.at("retry-after"), "1");
    EXPECT_TRUE(third.at_end());
  }
  EXPECT_EQ(stats().connections_refused.value(), 1U);
  first.close();
  ASSERT_TRUE(eventually([this] { return stats().connections_open.value() == 1; }));
  RawClient fourth(port());
  fourth.send(request_text("GET", "/cheap/"));
  EXPECT_EQ(fourth.read_answer().status, 200);
}

TEST_F(Limits, AFullWorkerQueueIsNamedAndCheapRequestsPassIt) {
  options.workers = 1;
  options.worker_queue_max = 1;
  service.close_gate();
  listen();
  RawClient running(port());
  running.send(request_text("POST", "/echo", "1"));
  ASSERT_TRUE(service.wait_at_gate(1));
  RawClient waiting(port());
  RawClient refused(port());
  // Which of the two waits is decided by who comes first; one of them must be refused.
  waiting.send(request_text("POST", "/echo", "2"));
  refused.send(request_text("POST", "/echo", "2"));
  ASSERT_TRUE(eventually([this] { return stats().requests_refused.value() == 1; }));
  service.open_gate();
  EXPECT_EQ(running.read_answer().body, "POST /echo|1");
  int served = 0;
  for (RawClient* client : {&waiting, &refused}) {
    const RawAnswer answer = client->read_answer();
    if (answer.status == 200) {
      EXPECT_EQ(answer.body, "POST /echo|2");
      ++served;
    } else {
      expect_error(answer, 503, "unavailable_error");
      EXPECT_EQ(answer.headers.at("retry-after"), "1");
    }
    client->send(request_text("GET", "/cheap/next"));  // The connection stays.
    EXPECT_EQ(client->read_answer().body, "GET /cheap/next|");
  }
  EXPECT_EQ(served, 1);
}

// No more files can be opened while it exists.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

TEST_F(Limits, WithoutDescriptorsClientsWaitUntilThereAreSome) {
  listen();
  RawClient client;
  {
    const NoMoreFiles none;
    client.connect(port());
    client.send(request_text("GET", "/cheap/"));
    ASSERT_TRUE(eventually([this] { return stats().accepts_failed.value() > 0; }));
  }
  EXPECT_EQ(client.read_answer().status, 200);
}

}  // namespace
}  // namespace fermata::http
