// A client that goes away ends its request at once, in every phase, and nothing of it stays.
#include "base/random.h"
#include "unit/http/rig.h"

#include <filesystem>

namespace fermata::http {
namespace {

enum class Way : unsigned char { fin, rst, half_close };

class Disconnects : public HttpTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    options.workers = 1;
    options.worker_queue_max = 1;
    listen();
  }

  static void leave(RawClient& client) {
    switch (GetParam()) {
      case Way::fin:
        return client.close();
      case Way::rst:
        return client.reset();
      case Way::half_close:
        return client.shut_down_sending();
    }
  }

  std::shared_ptr<Script> ask(RawClient& client, std::string_view body = "{}") {
    client.send(request_text("POST", "/scripted", body));
    return service.next_script();
  }

  void expect_abandoned(Script& script) {
    EXPECT_TRUE(script.wait_destroyed());
    EXPECT_TRUE(all_closed());
    EXPECT_EQ(stats().requests_abandoned.value(), 1U);
    EXPECT_EQ(service.live(), 0);
  }
};

TEST_P(Disconnects, WhileTheFirstPieceIsAwaited) {
  RawClient client(port());
  const auto script = ask(client);
  leave(client);
  expect_abandoned(*script);
}

TEST_P(Disconnects, InAStreamThatIsSilent) {
  RawClient client(port());
  const auto script = ask(client);
  script->push(stream_head());
  script->push_text("data: 1\n\n");
  EXPECT_TRUE(client.read_head().whole);
  EXPECT_EQ(client.read_chunk(), "data: 1\n\n");
  leave(client);
  expect_abandoned(*script);
}

TEST_P(Disconnects, WhileAWriteIsBlocked) {
  RawClient client(port(), 4096);
  const auto script = ask(client);
  script->push(stream_head());
  script->push_text(std::string(32'000'000, 'f'));
  ASSERT_TRUE(script->wait_pulled(2));
  leave(client);
  expect_abandoned(*script);
}

TEST_P(Disconnects, BehindBytesThatAreNotReadYet) {
  RawClient client(port());
  const auto script = ask(client);
  script->push(stream_head());
  EXPECT_TRUE(client.read_head().whole);
  // More than is read ahead, but no more than the kernel takes for us.
  ASSERT_TRUE(client.send(request_text("POST", "/echo", std::string(40'000, 'b'))));
  leave(client);
  expect_abandoned(*script);
}

TEST_P(Disconnects, WhileAWorkerIsAtIt) {
  service.close_gate();
  RawClient client(port());
  client.send(request_text("POST", "/scripted", "{}"));
  ASSERT_TRUE(service.wait_at_gate(1));
  leave(client);
  EXPECT_TRUE(all_closed());
  service.open_gate();
  const auto script = service.next_script();
  ASSERT_TRUE(script);
  expect_abandoned(*script);
}

TEST_P(Disconnects, InTheWorkerQueue) {
  service.close_gate();
  RawClient running(port());
  running.send(request_text("POST", "/echo", "1"));
  ASSERT_TRUE(service.wait_at_gate(1));
  {
    RawClient client(port());
    client.send(request_text("POST", "/scripted", "{}"));
    ASSERT_TRUE(eventually([this] { return stats().connections_open.value() == 2; }));
    leave(client);
    if (GetParam() == Way::rst) {
      // The request may have been thrown away with the connection before it was read.
      ASSERT_TRUE(eventually([this] { return stats().connections_open.value() == 1; }));
    } else {
      ASSERT_TRUE(eventually([this] { return stats().requests_abandoned.value() == 1; }));
    }
  }
  RawClient next(port());
  next.send(request_text("POST", "/echo", "2"));  // Its place in the queue is free again.
  // Connections are served in order, so `next` waits in the queue once a later one is answered.
  RawClient later(port());
  later.send(request_text("GET", "/cheap/"));
  EXPECT_EQ(later.read_answer().status, 200);
  service.open_gate();
  EXPECT_EQ(running.read_answer().body, "POST /echo|1");
  EXPECT_EQ(next.read_answer().body, "POST /echo|2");
  EXPECT_EQ(stats().requests_refused.value(), 0U);
  EXPECT_EQ(service.begun(), 3);  // The abandoned one never began; one was cheap.
}

TEST_P(Disconnects, InTheMiddleOfARequest) {
  for (const std::string part :
       {"", "GET /cheap HT", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"}) {
    RawClient client(port());
    client.send(part);
    leave(client);
    EXPECT_EQ(client.read_rest(), "");
  }
  EXPECT_TRUE(all_closed());
  EXPECT_EQ(service.begun(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, Disconnects, testing::Values(Way::fin, Way::rst, Way::half_close),
                         [](const auto& way) -> std::string {
                           switch (way.param) {
                             case Way::fin:
                               return "Fin";
                             case Way::rst:
                               return "Rst";
                             case Way::half_close:
                               return "HalfClose";
                           }
                           return "";
                         });

class HalfClosed : public HttpTest {};

TEST_F(HalfClosed, AnAnswerThatIsReadyIsStillDelivered) {
  listen();
  // As `printf ... | nc -N` does; cheap requests never wait.
  RawClient client(port());
  client.send(request_text("GET", "/cheap/"));
  client.shut_down_sending();
  EXPECT_EQ(client.read_answer().body, "GET /cheap/|");
}

TEST_F(HalfClosed, AnAnswerThatIsCompleteIsWrittenToItsEnd) {
  listen();
  RawClient client(port(), 4096);
  client.send(request_text("POST", "/scripted", "{}"));
  const auto script = service.next_script();
  const std::string body(32'000'000, 'w');
  script->push(whole_answer(200, body));
  ASSERT_TRUE(script->wait_destroyed());
  client.shut_down_sending();
  EXPECT_EQ(client.read_answer().body, body);
}

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

class Storm : public HttpTest {};

TEST_F(Storm, RandomConnectsAndAbortsLeaveNothing) {
  options.io_threads = 2;
  listen();
  const std::ptrdiff_t files_before = open_files();
  Random random(20240229);
  for (int round = 0; round < 200; ++round) {
    RawClient client(port(), random.chance(20) ? 4096 : 0);
    const std::string request =
        request_text("POST", random.chance(70) ? "/scripted" : "/echo",
                     std::string(static_cast<std::size_t>(random.between(1, 3000)), 'r'));
    const bool cut_request = random.chance(20);
    const auto size = static_cast<std::int64_t>(request.size());
    client.send(std::string_view(request).substr(
        0, static_cast<std::size_t>(cut_request ? random.between(0, size - 1) : size)));
    if (!cut_request && request.starts_with("POST /scripted")) {
      const auto script = service.next_script();
      ASSERT_TRUE(script);
      const bool headed = random.chance(70);
      if (headed) script->push(stream_head());
      if (headed && random.chance(50)) {
        script->push_text(std::string(static_cast<std::size_t>(random.between(1, 500'000)), 's'));
      }
      if (headed && random.chance(30)) client.read_head();
      if (random.chance(20)) client.send("GET /cheap HTTP/1.1\r\nHost: x\r\n");
    }
    random.chance(50) ? client.reset() : client.close();
  }
  EXPECT_TRUE(all_closed());
  EXPECT_TRUE(eventually([this] { return service.live() == 0; }));
  EXPECT_EQ(open_files(), files_before);
  RawClient after(port());
  after.send(request_text("GET", "/cheap/"));
  EXPECT_EQ(after.read_answer().status, 200);
}

}  // namespace
}  // namespace fermata::http
