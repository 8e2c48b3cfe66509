// The HTTP/1.1 front: sockets, limits, keep-alive, streams. It moves bytes; what they mean is the
// business of the api::Service behind it. Design and figures: docs/design/http.md.
#pragma once

#include "api/exchange.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "http/cors.h"
#include "http/stats.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fermata::http {

// Every limit of the front. What happens when one is reached is said beside it.
struct ServerOptions {
  // Addresses or names of this machine; a path that ends in ".sock" is a Unix socket.
  std::vector<std::string> hosts = {"127.0.0.1"};
  std::uint16_t port = 8080;  // 0: any free one, the same on all hosts.
  bool reuse_port = false;    // Other servers may listen on the same port.
  // PEM files. Both: TLS on every address; Unix sockets stay plain. REQUIRES: both or none.
  std::string ssl_key_file;
  std::string ssl_cert_file;

  int io_threads = 1;          // Each with its own event loop; 1 is enough for 2 cores.
  int workers = 2;             // Threads that run Service::begin.
  int worker_queue_max = 256;  // Requests waiting for a worker; beyond: 503 with Retry-After.

  Bytes header_max{32 * 1024};           // Request line and headers; beyond: 431 and the end.
  Bytes body_max{100 * 1024 * 1024};     // Beyond: 413 before the body is read, and the end.
  Bytes bodies_max{1024 * 1024 * 1024};  // All bodies over 64 KiB together, until begin() has read
                                         // them; beyond: 503 with Retry-After and the end.
  int connections_max = 1024;            // Beyond: 503 with Retry-After and the end.

  // Checked every `tick`, so they may come that much late.
  Micros idle_timeout{600'000'000};    // Between requests; then the connection ends silently.
  Micros read_timeout{3'600'000'000};  // For a whole head, and for each 16 KiB of a body; then 408.
  Micros write_timeout{3'600'000'000};   // Without the client taking a byte; then the end.
  Micros handshake_timeout{10'000'000};  // Of TLS; then the end.
  Micros linger_timeout{2'000'000};      // For the client to take the last answer before a close.
  Micros stall_timeout{2'000'000};  // In a graceful stop: when all clients that are left have taken
                                    // no byte for so long, it becomes stop_now().
  Micros tick{250'000};

  std::string api_prefix;  // "" or "/prefix": taken off every path; others: 404.
  CorsOptions cors;
  std::string server_name = "llama.cpp";  // The `Server:` header that clients look for.
  bool log_requests = false;              // A line for each request.
};

// A listening server with its threads. All methods are thread-safe (not signal-safe).
//
// Every request becomes one Exchange, which lives until its last piece was pulled or its client
// went away, whichever is first. A client is gone when it closes or resets its connection, and
// also when it shuts down only its sending side while its answer is still being made: the two
// look alike from here. An answer that is complete is delivered to a half-closed client.
class Server {
 public:
  // Binds, starts the threads and serves at once. `service` and `clock` outlive the server.
  // The error is one line that says what failed and the mend.
  // REQUIRES: there is a host; threads, limits and times are positive.
  static Result<std::unique_ptr<Server>, std::string> listen(const ServerOptions& options,
                                                             api::Service& service,
                                                             const Clock& clock);
  // Like stop_now() and wait_until_ended().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // 0: there are Unix sockets only.
  std::uint16_t port() const;
  // "127.0.0.1:8080" or "unix:PATH", one for each listening socket.
  const std::vector<std::string>& addresses() const;

  // No new connections; idle ones end; requests that have begun to arrive go on until they are
  // answered. After `grace` (none: never) it becomes stop_now(). Returns at once.
  void stop_gracefully(std::optional<Micros> grace = std::nullopt);
  // Ends all connections and so destroys all exchanges. Returns at once. A Service::begin that
  // runs is waited for by wait_until_ended().
  void stop_now();
  // Blocks until a stop has ended the last connection, and all threads. REQUIRES: not called from
  // the service.
  void wait_until_ended();

  const ServerStats& stats() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fermata::http
