// What all connections of one server have in common.
#pragma once

#include "api/exchange.h"
#include "base/clock.h"
#include "http/server.h"
#include "http/tls.h"
#include "http/worker_pool.h"

#include <cstddef>
#include <memory>

namespace fermata::http {

enum class StopLevel : unsigned char {
  none,
  graceful,  // What has begun is finished; nothing new begins.
  now,
};

// Outlives all connections and event loops. Thread-safe: constant, or thread-safe by itself.
struct Shared {
  Shared(const ServerOptions& o, api::Service& s, const Clock& c)
      : options(o),
        service(s),
        clock(c),
        pool(o.workers, static_cast<std::size_t>(o.worker_queue_max)) {}

  const ServerOptions options;
  api::Service& service;
  const Clock& clock;
  ServerStats stats;
  Gauge refusals_open;  // Connections over the limit that are being told so.
  WorkerPool pool;
  std::unique_ptr<const TlsContext> tls;  // Null: plain. Set before the first connection.
};

}  // namespace fermata::http
