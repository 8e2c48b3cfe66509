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
  std::vector<Micros> events;           // When each token's event arrived, on the steady clock.
  std::vector<Micros> parked, resumed;  // When it was told so.
  Json last;                            // The final event; null when `stop` came first.
};

// Whether GET /health answers 200.
bool is_healthy(int port);

// Several at once, each in a thread of its own.
std::vector<Result<StreamFigures, std::string>> stream_each(int port,
                                                            const std::vector<Json>& bodies);
// The same where all must succeed. Error: of the first that failed.
Result<std::vector<StreamFigures>, std::string> stream_completions(int port,
                                                                   const std::vector<Json>& bodies);

// A completion of exactly so many tokens after a short prompt of its own. REQUIRES: number < 900.
Json plain_request(int number, int tokens);

// Streams POST /completion and waits for its end, or leaves at the first event after `stop`.
// Thread-safe. Error: one line.
Result<StreamFigures, std::string> stream_completion(int port, const Json& body,
                                                     const std::stop_token& stop = {});

}  // namespace fermata::bench
