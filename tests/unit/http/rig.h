// A server on a free port of 127.0.0.1 with a scripted service and a clock that the test moves.
#pragma once

#include "base/clock.h"
#include "http/server.h"
#include "unit/http/raw_client.h"
#include "unit/http/scripted_service.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace fermata::http {

constexpr Micros second{1'000'000};

// A clock that the test moves and that tells when it was looked at. Thread-safe.
class WatchedClock final : public Clock {
 public:
  Micros now() const override {
    looks_.fetch_add(1, std::memory_order_relaxed);
    return time_.now();
  }
  void advance(Micros by) { time_.advance(by); }
  int looks() const { return looks_.load(std::memory_order_relaxed); }

 private:
  FakeClock time_;
  mutable std::atomic<int> looks_{0};
};

class HttpTest : public testing::Test {
 protected:
  HttpTest() {
    options.port = 0;
    options.tick = Micros(1'000);
  }

  ~HttpTest() override { service.open_gate(); }

  void listen() {
    auto listening = Server::listen(options, service, clock);
    ASSERT_TRUE(listening.ok()) << listening.error();
    server = std::move(listening).value();
  }

  std::uint16_t port() const { return server->port(); }
  const ServerStats& stats() const { return server->stats(); }
  bool all_closed() const {
    return eventually([this] {
      return stats().connections_open.value() == 0 && stats().exchanges_open.value() == 0;
    });
  }

  // Lets second after second pass on the server's clock.
  bool pass_time_until(const std::function<bool()>& condition) {
    return eventually([&] {
      if (condition()) return true;
      clock.advance(second);
      return false;
    });
  }

  // Until the server, which has nothing else to do, has compared its deadlines with the time.
  bool time_is_seen() const {
    const int before = clock.looks();  // One look may belong to what just ended, one has begun.
    return eventually([&] { return clock.looks() >= before + 3; });
  }

  WatchedClock clock;
  ScriptedService service;
  ServerOptions options;
  std::unique_ptr<Server> server;  // Ends before the service does.
};

}  // namespace fermata::http
