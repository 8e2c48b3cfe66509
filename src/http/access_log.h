// One line in the log for each request: what was asked, what came of it. No query, no body, no
// header: they hold texts and keys.
#pragma once

#include "api/exchange.h"
#include "base/types.h"

#include <cstdint>
#include <string>

namespace fermata::http {

// A request and what has become of it so far.
struct Visit {
  api::Method method = api::Method::other;
  std::string path = {};    // Empty: the request line has not been understood.
  std::string origin = {};  // What its Origin header says.
  Micros begun{0};          // Its first byte was seen.
  int status = 0;           // 0: no answer has begun.
  std::uint64_t bytes = 0;
  bool is_cut = false;  // The connection ended before the answer did.
};

// "POST /v1/chat/completions 200, 1234 bytes, 56.7 ms"
std::string visit_text(const Visit& visit, Micros took);

// At info, at debug what monitors ask for again and again. A line without path and status is none.
void log_visit(const Visit& visit, Micros now);

}  // namespace fermata::http
