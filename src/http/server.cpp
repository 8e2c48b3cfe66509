#include "http/server.h"

#include "base/check.h"
#include "base/log.h"
#include "http/listener.h"
#include "http/loop.h"
#include "http/shared.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <spdlog/fmt/fmt.h>

namespace fermata::http {
namespace {

namespace asio = boost::asio;

// Connections over connections_max that may be told so at one time; beyond them the socket is
// closed without a word.
constexpr int refusals_open_max = 64;
constexpr std::chrono::milliseconds accept_pause{100};

void check_options(const ServerOptions& options) {
  FERMATA_CHECK(!options.hosts.empty(), "a server listens somewhere");
  FERMATA_CHECK(options.io_threads > 0, "io_threads is positive");
  FERMATA_CHECK(options.workers > 0, "workers is positive");
  FERMATA_CHECK(options.worker_queue_max > 0, "worker_queue_max is positive");
  FERMATA_CHECK(options.connections_max > 0, "connections_max is positive");
  FERMATA_CHECK(options.header_max > Bytes(0), "header_max is positive");
  FERMATA_CHECK(options.header_max <= Bytes(std::int64_t{1} << 30), "header_max is below 1 GiB");
  FERMATA_CHECK(options.body_max > Bytes(0), "body_max is positive");
  FERMATA_CHECK(options.bodies_max > Bytes(0), "bodies_max is positive");
  FERMATA_CHECK(options.idle_timeout > Micros(0), "idle_timeout is positive");
  FERMATA_CHECK(options.read_timeout > Micros(0), "read_timeout is positive");
  FERMATA_CHECK(options.write_timeout > Micros(0), "write_timeout is positive");
  FERMATA_CHECK(options.ssl_key_file.empty() == options.ssl_cert_file.empty(),
                "TLS needs a key and a certificate");
  FERMATA_CHECK(options.handshake_timeout > Micros(0), "handshake_timeout is positive");
  FERMATA_CHECK(options.stall_timeout > Micros(0), "stall_timeout is positive");
  FERMATA_CHECK(options.linger_timeout > Micros(0), "linger_timeout is positive");
  FERMATA_CHECK(options.tick > Micros(0), "tick is positive");
}

bool is_prefix(const std::string& text) {
  return text.empty() || (text.starts_with('/') && !text.ends_with('/'));
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, api::Service& service, const Clock& clock)
      : shared_(options, service, clock) {
    for (int i = 0; i < options.io_threads; ++i) {
      loops_.push_back(std::make_unique<Loop>(shared_, [this] { note_ended(); }));
    }
  }

  Result<void, std::string> open() {
    const ServerOptions& options = shared_.options;
    if (!options.ssl_cert_file.empty()) {
      auto tls = TlsContext::load(options.ssl_key_file, options.ssl_cert_file);
      if (!tls) return Err{tls.error()};
      shared_.tls = std::move(tls).value();
    }
    auto opened = open_listening(
        loops_.front()->io(),
        {.hosts = options.hosts, .port = options.port, .reuse_port = options.reuse_port});
    if (!opened) return Err{opened.error()};
    listening_ = std::move(opened).value();
    return {};
  }

  void start() {
    for (Acceptor& acceptor : listening_.acceptors) {
      asio::co_spawn(loops_.front()->io(), accept_all(acceptor), [](std::exception_ptr thrown) {
        FERMATA_CHECK(thrown == nullptr, "an exception left an accept loop");
      });
    }
    for (const auto& loop : loops_) threads_.emplace_back([&loop = *loop] { loop.run(); });
  }

  // The acceptors live on the first loop. What they have handed to other loops is in those loops'
  // queues before the stop is.
  void stop(StopLevel level, std::optional<Micros> grace) {
    asio::post(loops_.front()->io(), [this, level, grace] {
      listening_.files.clear();
      for (Acceptor& acceptor : listening_.acceptors) {
        ErrorCode ignored;
        acceptor.close(ignored);
      }
      for (const auto& loop : loops_) {
        asio::post(loop->io(), [&loop = *loop, level, grace] { loop.stop(level, grace); });
      }
    });
  }

  void wait_until_ended() {
    std::call_once(waited_, [this] {
      {
        std::unique_lock lock(mutex_);
        ended_changed_.wait(lock, [this] { return loops_ended_ == loops_.size(); });
      }
      shared_.pool.close();  // Its last results are thrown away by loops that still run.
      for (const auto& loop : loops_) loop->release();
      for (std::thread& thread : threads_) thread.join();
    });
  }

  std::uint16_t port() const { return listening_.port; }
  const std::vector<std::string>& addresses() const { return listening_.addresses; }
  const ServerStats& stats() const { return shared_.stats; }

 private:
  Task<void> accept_all(Acceptor& acceptor) {
    Timer pause(loops_.front()->io());
    bool failing = false;
    for (;;) {
      Loop& loop = *loops_[next_loop_++ % loops_.size()];
      auto [error, socket] = co_await acceptor.async_accept(loop.io(), use_task_tuple);
      if (!acceptor.is_open()) co_return;
      if (!error) {
        failing = false;
        admit(loop, std::move(socket));
      } else if (error != asio::error::connection_aborted) {
        // Out of descriptors or memory: clients wait in the backlog meanwhile.
        shared_.stats.accepts_failed.add();
        if (!failing) log_warn("cannot accept connections for now: {}", error.message());
        failing = true;
        pause.expires_after(accept_pause);
        co_await pause.async_wait(use_task_tuple);
      }
    }
  }

  void admit(Loop& loop, Socket socket) {
    ServerStats& stats = shared_.stats;
    const bool full = stats.connections_open.value() >= shared_.options.connections_max;
    if (full != full_) {
      full_ = full;
      if (full) log_warn("all {} connections are in use", shared_.options.connections_max);
    }
    if (!full) {
      stats.connections_total.add();
      stats.connections_open.add(1);
    } else {
      stats.connections_refused.add();
      if (shared_.refusals_open.value() >= refusals_open_max) return;
      shared_.refusals_open.add(1);
    }
    // Runs in place when this is the loop's thread.
    asio::dispatch(loop.io(), [&loop, full, socket = std::move(socket)]() mutable {
      loop.add(std::move(socket), full);
    });
  }

  void note_ended() {
    {
      const std::lock_guard lock(mutex_);
      ++loops_ended_;
    }
    ended_changed_.notify_all();
  }

  Shared shared_;
  std::vector<std::unique_ptr<Loop>> loops_;
  Listening listening_;
  std::vector<std::thread> threads_;

  // The first loop's thread only.
  std::size_t next_loop_ = 0;
  bool full_ = false;

  std::mutex mutex_;
  std::condition_variable ended_changed_;
  std::size_t loops_ended_ = 0;
  std::once_flag waited_;
};

Result<std::unique_ptr<Server>, std::string> Server::listen(const ServerOptions& options,
                                                            api::Service& service,
                                                            const Clock& clock) {
  check_options(options);
  if (!is_prefix(options.api_prefix)) {
    return Err{
        fmt::format("the API prefix '{}' is none: it starts with '/' and does not end with "
                    "it; see --api-prefix",
                    options.api_prefix)};
  }
  auto impl = std::make_unique<Impl>(options, service, clock);
  const auto opened = impl->open();
  if (!opened) return Err{opened.error()};
  impl->start();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  stop_now();
  wait_until_ended();
}

std::uint16_t Server::port() const { return impl_->port(); }
const std::vector<std::string>& Server::addresses() const { return impl_->addresses(); }
void Server::stop_gracefully(std::optional<Micros> grace) {
  impl_->stop(StopLevel::graceful, grace);
}
void Server::stop_now() { impl_->stop(StopLevel::now, std::nullopt); }
void Server::wait_until_ended() { impl_->wait_until_ended(); }
const ServerStats& Server::stats() const { return impl_->stats(); }

}  // namespace fermata::http
