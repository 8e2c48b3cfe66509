// Listening, the graceful stop and the immediate one.
#include "unit/http/rig.h"

#include <future>

namespace fermata::http {
namespace {

class Stops : public HttpTest {
 protected:
  bool refuses_connections() const {
    RawClient client(port());
    return !client.send(request_text("GET", "/cheap/")) || client.read_head().status == 0;
  }
};

TEST_F(Stops, GracefulStopEndsIdleConnectionsAndFinishesAnswers) {
  listen();
  RawClient idle(port());
  RawClient kept(port());
  kept.send(request_text("GET", "/cheap/"));
  EXPECT_EQ(kept.read_answer().status, 200);
  RawClient streaming(port());
  streaming.send(request_text("POST", "/scripted", "stream"));
  const auto stream = service.next_script();
  stream->push(stream_head());
  EXPECT_TRUE(streaming.read_head().whole);
  RawClient waiting(port());
  waiting.send(request_text("POST", "/scripted", "whole"));
  const auto whole = service.next_script();
  RawClient half(port());
  half.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n");
  half.send("bo");
  ASSERT_TRUE(eventually([this] { return stats().connections_open.value() == 5; }));

  server->stop_gracefully();
  EXPECT_TRUE(idle.at_end());
  EXPECT_TRUE(kept.at_end());
  EXPECT_TRUE(refuses_connections());

  stream->push_text("data: 1\n\n");
  EXPECT_EQ(streaming.read_chunk(), "data: 1\n\n");
  stream->push(last_piece());
  EXPECT_EQ(streaming.read_chunk(), "");
  EXPECT_TRUE(streaming.at_end());
  whole->push(whole_answer(200, "done"));
  const RawAnswer answer = waiting.read_answer();
  EXPECT_EQ(answer.body, "done");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(waiting.at_end());
  half.send("dy");
  EXPECT_EQ(half.read_answer().body, "POST /echo|body");
  for (RawClient* client : {&streaming, &waiting, &half}) client->close();
  server->wait_until_ended();
  EXPECT_EQ(stats().connections_open.value(), 0);
  EXPECT_EQ(stats().requests_abandoned.value(), 0U);
}

TEST_F(Stops, GraceRunsOut) {
  listen();
  RawClient client(port());
  client.send(request_text("POST", "/scripted", "{}"));
  const auto script = service.next_script();
  script->push(stream_head());
  EXPECT_TRUE(client.read_head().whole);
  server->stop_gracefully(second * 60);
  ASSERT_TRUE(pass_time_until([&] { return stats().exchanges_open.value() == 0; }));
  EXPECT_GE(clock.now(), second * 60);
  EXPECT_TRUE(script->wait_destroyed());
  EXPECT_FALSE(client.read_chunk());  // It ends without the last chunk, so the client can tell.
  server->wait_until_ended();
}

TEST_F(Stops, AClientThatReadsNothingDoesNotHoldAGracefulStop) {
  listen();
  RawClient blocked(port(), 4096);
  blocked.send(request_text("POST", "/scripted", "{}"));
  const auto flood = service.next_script();
  flood->push(stream_head());
  flood->push_text(std::string(32'000'000, 'f'));
  ASSERT_TRUE(flood->wait_pulled(2));
  RawClient working(port());
  working.send(request_text("POST", "/scripted", "{}"));
  const auto script = service.next_script();
  server->stop_gracefully();
  // While somebody else is still served nobody is cut.
  clock.advance(second * 60);
  ASSERT_TRUE(time_is_seen());
  EXPECT_EQ(stats().exchanges_open.value(), 2);
  script->push(whole_answer(200, "done"));
  EXPECT_EQ(working.read_answer().body, "done");
  working.close();
  ASSERT_TRUE(pass_time_until([&] { return stats().exchanges_open.value() == 0; }));
  EXPECT_TRUE(flood->wait_destroyed());
  server->wait_until_ended();
}

TEST_F(Stops, ImmediateStopEndsEverythingInEveryPhase) {
  options.io_threads = 2;
  options.workers = 1;
  listen();
  RawClient idle(port());
  RawClient half(port());
  half.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
  RawClient silent(port());
  silent.send(request_text("POST", "/scripted", "{}"));
  const auto script = service.next_script();
  RawClient blocked(port(), 4096);
  blocked.send(request_text("POST", "/scripted", "{}"));
  const auto flood = service.next_script();
  flood->push(stream_head());
  flood->push_text(std::string(32'000'000, 'f'));
  ASSERT_TRUE(flood->wait_pulled(2));
  service.close_gate();
  RawClient at_worker(port());
  at_worker.send(request_text("POST", "/scripted", "{}"));
  ASSERT_TRUE(service.wait_at_gate(1));
  RawClient queued(port());
  queued.send(request_text("POST", "/scripted", "{}"));
  ASSERT_TRUE(eventually([this] { return stats().connections_open.value() == 6; }));

  server->stop_now();
  for (RawClient* client : {&idle, &half, &silent, &at_worker, &queued}) {
    EXPECT_TRUE(client->at_end());
  }
  EXPECT_TRUE(script->wait_destroyed());
  EXPECT_TRUE(flood->wait_destroyed());
  EXPECT_TRUE(all_closed());
  service.open_gate();
  server->wait_until_ended();
  EXPECT_EQ(service.live(), 0);
  EXPECT_TRUE(refuses_connections());
}

TEST_F(Stops, TheSecondStopCutsTheFirstShort) {
  listen();
  RawClient client(port());
  client.send(request_text("POST", "/scripted", "{}"));
  const auto script = service.next_script();
  server->stop_gracefully();
  EXPECT_TRUE(eventually([this] { return refuses_connections(); }));
  EXPECT_EQ(stats().exchanges_open.value(), 1);
  server->stop_now();
  EXPECT_TRUE(script->wait_destroyed());
  server->wait_until_ended();
  server->wait_until_ended();  // Saying it twice is fine.
}

TEST_F(Stops, AStopDuringRequestsAnswersOrRefusesEachWhole) {
  options.io_threads = 2;
  listen();
  auto client = std::async(std::launch::async, [this] {
    int answered = 0;
    for (;;) {
      RawClient one(port());
      if (!one.send(request_text("POST", "/echo", "x"))) return answered;
      const RawAnswer answer = one.read_answer();
      if (answer.status == 0) return answered;
      EXPECT_TRUE(answer.whole);
      EXPECT_EQ(answer.body, "POST /echo|x");
      ++answered;
    }
  });
  ASSERT_TRUE(eventually([this] { return stats().answers[1].value() >= 20; }));
  server->stop_gracefully();
  server->wait_until_ended();
  EXPECT_GE(client.get(), 20);
}

TEST_F(Stops, ATakenPortIsOneLineWithTheMend) {
  listen();
  options.port = port();
  const auto second_server = Server::listen(options, service, clock);
  ASSERT_FALSE(second_server.ok());
  EXPECT_EQ(second_server.error(),
            "cannot listen on 127.0.0.1:" + std::to_string(port()) +
                ": the port is in use; end the program that has it or choose another with --port");
}

TEST_F(Stops, ABadHostIsOneLineWithTheMend) {
  options.hosts = {"192.0.2.1"};  // Reserved for documentation: no machine has it.
  const auto foreign = Server::listen(options, service, clock);
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error(),
            "cannot listen on 192.0.2.1:0: this machine has no such address; see --host");
  options.hosts = {"no such name"};
  const auto nonsense = Server::listen(options, service, clock);
  ASSERT_FALSE(nonsense.ok());
  EXPECT_EQ(nonsense.error(),
            "cannot listen on host 'no such name': no address of that name; see --host");
}

TEST_F(Stops, ABadPrefixIsOneLineWithTheMend) {
  for (const std::string prefix : {"api", "/api/", "/"}) {
    options.api_prefix = prefix;
    const auto refused = Server::listen(options, service, clock);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error(), "the API prefix '" + prefix +
                                   "' is none: it starts with '/' and does not end with it; see "
                                   "--api-prefix");
  }
}

TEST_F(Stops, BadTlsFilesAreOneLineWithTheMend) {
  options.ssl_cert_file = "/nowhere.crt";
  options.ssl_key_file = "/nowhere.key";
  const auto refused = Server::listen(options, service, clock);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(),
            "--ssl-cert-file: cannot read '/nowhere.crt': No such file or directory; give a PEM "
            "file");
}

TEST_F(Stops, SeveralHostsShareOnePort) {
  options.hosts = {"127.0.0.1", "127.0.0.2"};
  listen();
  ASSERT_EQ(server->addresses().size(), 2U);
  EXPECT_EQ(server->addresses()[0], "127.0.0.1:" + std::to_string(port()));
  EXPECT_EQ(server->addresses()[1], "127.0.0.2:" + std::to_string(port()));
}

}  // namespace
}  // namespace fermata::http
