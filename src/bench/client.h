// A blocking client for one completion, with the time of every event.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "bench/report.h"

#include <stop_token>
#include <string>
#include <vector>

namespace fermata::bench {

struct StreamFigures {
  std::vector<Micros> events;  // When each token's event arrived, on the steady clock.
  Json last;                   // The final event; null when `stop` came first.
};

// Streams POST /completion and waits for its end, or leaves at the first event after `stop`.
// Thread-safe. Error: one line.
Result<StreamFigures, std::string> stream_completion(int port, const Json& body,
                                                     const std::stop_token& stop = {});

}  // namespace fermata::bench
