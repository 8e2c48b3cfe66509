// A whole server in one process on the fake engine: real sockets, real threads, no libllama, so
// that the thread sanitizer sees everything.
#include "app/instance.h"

#include "app/gate.h"
#include "engine/fake/fake_model.h"
#include "engine/fake/fake_vocabulary.h"
#include "http/server.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fermata::app {
namespace {

class WholeServer {
 public:
  explicit WholeServer(settings::Settings settings = {}) {
    settings.context.n_ctx = Tokens(512);
    http::ServerOptions options;
    options.port = 0;
    auto server = http::Server::listen(options, gate_, clock_);
    EXPECT_TRUE(server.ok());
    server_ = std::move(server).value();
    engine::fake::FakeModelSpec spec;
    auto instance =
        Instance::start(settings, engine::fake::make_model(spec), engine::fake::make_vocabulary());
    EXPECT_TRUE(instance.ok());
    instance_ = std::move(instance).value();
  }
  ~WholeServer() {
    server_->stop_now();
    server_->wait_until_ended();
  }

  void open() { gate_.open(instance_->service()); }
  Instance& instance() { return *instance_; }

  int connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  // Sends one request that asks for the connection to be closed after it.
  int send(const std::string& method_and_path, const std::string& body) const {
    const int fd = connect();
    const std::string text = method_and_path +
                             " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body;
    EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    return fd;
  }

  std::string ask(const std::string& method_and_path, const std::string& body = "") const {
    const int fd = send(method_and_path, body);
    std::string answer;
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(n));
    }
    close(fd);
    return answer;
  }

 private:
  SteadyClock clock_;
  Gate gate_;
  std::unique_ptr<Instance> instance_;
  std::unique_ptr<http::Server> server_;
};

TEST(Gate, AnswersLoadingUntilOpened) {
  WholeServer server;
  const std::string loading = server.ask("GET /health");
  EXPECT_NE(loading.find(" 503 "), std::string::npos);
  EXPECT_NE(loading.find("Loading model"), std::string::npos);
  server.open();
  EXPECT_NE(server.ask("GET /health").find("{\"status\":\"ok\"}"), std::string::npos);
}

TEST(Instance, RefusesAGeometryInOneLine) {
  settings::Settings settings;
  settings.context.n_ctx = Tokens(1);
  const auto instance =
      Instance::start(settings, engine::fake::make_model({}), engine::fake::make_vocabulary());
  ASSERT_FALSE(instance.ok());
  EXPECT_NE(instance.error().find("n_ctx"), std::string::npos);
}

TEST(Instance, ManyClientsSomeOfWhomLeave) {
  WholeServer server;
  server.open();
  std::atomic<int> whole{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 6; ++c) {
    clients.emplace_back([&server, &whole, c] {
      for (int round = 0; round < 10; ++round) {
        const std::string stream = round % 2 == 0 ? "true" : "false";
        const std::string body = "{\"prompt\":\"client " + std::to_string(c) +
                                 "\",\"n_predict\":40,\"stream\":" + stream + "}";
        if ((c + round) % 3 == 0) {
          close(server.send("POST /completion", body));  // Gone before the answer.
          continue;
        }
        const std::string answer = server.ask("POST /completion", body);
        whole += answer.find("\"tokens_predicted\":40") != std::string::npos ? 1 : 0;
        EXPECT_NE(server.ask("GET /slots").find(" 200 "), std::string::npos);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(whole, 40);
}

TEST(Instance, EndingRequestsTellsStreams) {
  WholeServer server;
  server.open();
  std::string answer;
  std::thread client([&] {
    answer = server.ask("POST /completion", R"({"prompt":"x","n_predict":400,"stream":true})");
  });
  server.instance().end_requests();
  client.join();
  const bool told = answer.find("shutting down") != std::string::npos;
  const bool was_quicker = answer.find("\"stop\":true") != std::string::npos;
  EXPECT_TRUE(told || was_quicker) << answer;
  EXPECT_NE(server.ask("POST /completion", R"({"prompt":"x"})").find(" 503 "), std::string::npos);
}

}  // namespace
}  // namespace fermata::app
