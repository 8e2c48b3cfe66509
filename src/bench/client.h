// A blocking client for one completion, with the time of every event.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "bench/report.h"

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace fermata::bench {

struct StreamFigures {
  Micros sent{0};
  std::vector<Micros> events;  // When each token's event arrived, on the steady clock.
  // By event, with "return_tokens": its tokens. Several where the first of them ended within a
  // character, whose rest was waited for.
  std::vector<std::size_t> tokens_in_event;
  std::vector<Micros> parked, resumed;  // When it was told so.
  std::vector<int> tokens;              // Where the request has "return_tokens".
  Json last;                            // The final event; null when `stop` came first.
};

// Whether GET /health answers 200.
bool is_healthy(int port);
// The same so many times on one connection. Error: one line.
Result<void, std::string> ask_health(int port, int times);
// Posts and waits; the answer of a 200. Error: one line.
Result<Json, std::string> post_json(int port, const char* path, const Json& body);
// One number out of GET /metrics. Error: one line.
Result<double, std::string> read_metric(int port, const std::string& name);

// Requests of POST /completion whose answers nobody reads; they end with this object.
class OpenStreams {
 public:
  explicit OpenStreams(int port);
  ~OpenStreams();
  OpenStreams(const OpenStreams&) = delete;
  OpenStreams& operator=(const OpenStreams&) = delete;

  // So many more. Error: one line.
  Result<void, std::string> add(const Json& body, int count);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Several at once, each in a thread of its own.
std::vector<Result<StreamFigures, std::string>> stream_each(int port,
                                                            const std::vector<Json>& bodies);
// The same where all must succeed. Error: of the first that failed.
Result<std::vector<StreamFigures>, std::string> stream_completions(int port,
                                                                   const std::vector<Json>& bodies);

// Gaps in ms before the events of one token, each with the times of its ends. What waits for the
// rest of a character is no gap of the server's. REQUIRES: the request had "return_tokens".
struct Gap {
  Micros from, to;
  double ms = 0.0;
};
std::vector<Gap> gaps_of(const StreamFigures& figures);
// When each stream had its tokens, was parked and came back, in ms since `began`.
Json times_of(const std::vector<StreamFigures>& streams, Micros began);

// A completion of exactly so many tokens after a short prompt of its own. REQUIRES: number < 900.
Json plain_request(int number, int tokens);

// Streams POST /completion and waits for its end, or leaves at the first event after `stop`.
// Thread-safe. Error: one line.
Result<StreamFigures, std::string> stream_completion(int port, const Json& body,
                                                     const std::stop_token& stop = {});

}  // namespace fermata::bench
