// Streams: pieces leave at once, pile up under back-pressure, and are kept alive in silence.
#include "unit/http/rig.h"

#include <thread>

#include <malloc.h>

namespace fermata::http {
namespace {

class Streams : public HttpTest {
 protected:
  // A client with a stream whose head has arrived.
  std::shared_ptr<Script> start(RawClient& client) {
    client.send(request_text("POST", "/scripted", "{}"));
    std::shared_ptr<Script> script = service.next_script();
    script->push(stream_head());
    const RawAnswer head = client.read_head();
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.at("content-type"), "text/event-stream");
    EXPECT_EQ(head.headers.at("transfer-encoding"), "chunked");
    return script;
  }
};

TEST_F(Streams, TheHeadComesBeforeAnyPieceAndEachPieceAtOnce) {
  listen();
  RawClient client(port());
  const auto script = start(client);  // Nothing but the head exists yet.
  for (int i = 0; i < 20; ++i) {
    const std::string event = "data: " + std::to_string(i) + "\n\n";
    script->push_text(event);
    EXPECT_EQ(client.read_chunk(), event);  // The next is made only after this arrived.
  }
  script->push(last_piece());
  EXPECT_EQ(client.read_chunk(), "");
  EXPECT_TRUE(script->wait_destroyed());
  client.send(request_text("GET", "/cheap/next"));
  EXPECT_EQ(client.read_answer().body, "GET /cheap/next|");
}

TEST_F(Streams, AnErrorInsteadOfAStreamIsAPlainAnswer) {
  listen();
  RawClient client(port());
  client.send(request_text("POST", "/scripted", "{}"));
  service.next_script()->push(whole_answer(400, R"({"error":{}})"));
  const RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body, R"({"error":{}})");
}

TEST_F(Streams, PiecesThatPileUpBehindASlowClientAreJoined) {
  listen();
  RawClient client(port(), 4096);
  const auto script = start(client);
  const std::string flood(32'000'000, 'f');  // More than the sockets hold.
  script->push_text(flood);
  ASSERT_TRUE(script->wait_pulled(2));  // The head and the flood; its write cannot end.
  std::string joined;
  for (int i = 0; i < 100; ++i) {
    const std::string event = "data: " + std::to_string(i) + "\n\n";
    script->push_text(event);
    joined += event;
  }
  EXPECT_EQ(script->pieces_pulled(), 2);  // Never pulled while a write is in flight.
  EXPECT_EQ(client.read_chunk(), flood);
  EXPECT_EQ(client.read_chunk(), joined);
  EXPECT_EQ(script->pieces_pulled(), 102);
}

TEST_F(Streams, NoPieceIsLostWhateverTheThreadsDo) {
  options.io_threads = 2;
  listen();
  constexpr int streams = 4;
  constexpr int events = 2'000;
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::shared_ptr<Script>> scripts;
  for (int i = 0; i < streams; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    scripts.push_back(start(*clients.back()));
  }
  std::string expected;
  for (int i = 0; i < events; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  std::thread scheduler([&] {
    for (int i = 0; i < events; ++i) {
      for (const auto& script : scripts) {
        script->push_text("data: " + std::to_string(i) + "\n\n");
        script->wake();  // One too many does no harm.
      }
    }
    for (const auto& script : scripts) script->push(last_piece());
  });
  for (const auto& client : clients) {
    std::string got;
    for (;;) {
      const std::optional<std::string> chunk = client->read_chunk();
      ASSERT_TRUE(chunk);
      if (chunk->empty()) break;
      got += *chunk;
    }
    EXPECT_EQ(got, expected);
  }
  scheduler.join();
}

TEST_F(Streams, SilenceIsFilledWithPings) {
  service.set_ping_seconds(30);
  listen();
  RawClient client(port());
  const auto script = start(client);
  const std::int64_t start_us = clock.now().value;
  script->push_text("data: 1\n\n");
  EXPECT_EQ(client.read_chunk(), "data: 1\n\n");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_TRUE(pass_time_until([&] { return stats().pings.value() >= i; }));
    EXPECT_EQ(client.read_chunk(), ":\n\n");
    EXPECT_GE(clock.now().value - start_us, static_cast<std::int64_t>(i) * 29'000'000);
  }
  script->push_text("data: 2\n\n");
  EXPECT_EQ(client.read_chunk(), "data: 2\n\n");
  script->push(last_piece());
  EXPECT_EQ(client.read_chunk(), "");
}

TEST_F(Streams, PiecesPutOffThePing) {
  service.set_ping_seconds(30);
  listen();
  RawClient client(port());
  const auto script = start(client);
  for (int i = 0; i < 10; ++i) {
    clock.advance(second * 29);
    ASSERT_TRUE(time_is_seen());
    script->push_text("x");
    EXPECT_EQ(client.read_chunk(), "x");
  }
  EXPECT_EQ(stats().pings.value(), 0U);
}

TEST_F(Streams, NoPingWithoutAnIntervalAndNoneBeforeTheHead) {
  service.set_ping_seconds(1);
  listen();
  RawClient early(port());
  early.send(request_text("POST", "/scripted", "{}"));
  const auto not_begun = service.next_script();
  service.set_ping_seconds(0);
  RawClient silent(port());
  const auto never = start(silent);
  RawClient idle(port());
  ASSERT_TRUE(eventually([this] { return stats().connections_open.value() == 3; }));
  // Long enough to end an idle connection.
  ASSERT_TRUE(pass_time_until([this] { return stats().connections_open.value() == 2; }));
  not_begun->push(whole_answer(200, "late"));
  EXPECT_EQ(early.read_answer().body, "late");
  never->push(last_piece("end"));
  EXPECT_EQ(silent.read_chunk(), "end");
  EXPECT_EQ(stats().pings.value(), 0U);
}

TEST_F(Streams, AnOpenStreamTakesLittleMemory) {
  listen();
  constexpr int streams = 100;
  const std::string body(100'000, 'b');
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::shared_ptr<Script>> scripts;
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < streams; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send(request_text("POST", "/scripted", body));
    scripts.push_back(service.next_script());
    scripts.back()->push(stream_head());
    EXPECT_TRUE(clients.back()->read_head().whole);
  }
  const std::size_t after = mallinfo2().uordblks;
  // Neither the body nor the buffer it came through stays, only the connection, its coroutine and
  // this test's own part. (Sanitizers count nothing here.)
  EXPECT_LT(after, before + streams * 12 * 1024);
}

TEST_F(Streams, AWakeAfterTheEndWakesNobody) {
  listen();
  std::shared_ptr<Script> script;
  {
    RawClient client(port());
    script = start(client);
  }
  EXPECT_TRUE(script->wait_destroyed());
  script->wake();
  EXPECT_TRUE(all_closed());
  server.reset();
  script->wake();  // The event loop is gone too.
}

}  // namespace
}  // namespace fermata::http
