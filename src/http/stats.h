// What the HTTP front counts. Tests and /metrics read it directly.
#pragma once

#include "metrics/counters.h"

#include <array>
#include <cstddef>

namespace fermata::http {

struct ServerStats {
  Gauge connections_open;          // Served ones; refused ones are not in here.
  Counter connections_total;       // Accepted and served.
  Counter connections_refused;     // Over connections_max: got 503 or, in a flood, just the end.
  std::array<Counter, 5> answers;  // Heads sent, by status class: [0] is 1xx, [4] is 5xx.
  Counter requests_refused;        // The worker queue or the budget of bodies was full: 503.
  Counter requests_abandoned;      // The client went away, or the server stopped, before the end.
  Gauge body_bytes;                // Charged to ServerOptions::bodies_max.
  Counter accepts_failed;          // Out of descriptors or memory; tried again after a pause.
  Gauge exchanges_open;            // Exchanges that connections hold.
  Counter bytes_out;               // All bytes handed to sockets.
  Counter pings;

  void count_answer(int status) {
    if (status >= 100 && status <= 599) answers[static_cast<std::size_t>(status / 100 - 1)].add();
  }
};

}  // namespace fermata::http
