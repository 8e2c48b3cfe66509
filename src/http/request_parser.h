// One HTTP/1.x request from bytes, as they come in pieces of any size.
#pragma once

#include "api/exchange.h"
#include "http/response.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace fermata::http {

struct RequestLimits {
  std::size_t header_bytes_max = 0;  // Request line and headers together.
  std::size_t body_bytes_max = 0;    // After chunked decoding.
};

// Used for one request, by one thread. Holds memory in proportion to what has arrived, not to what
// a Content-Length promises.
class RequestParser {
 public:
  explicit RequestParser(const RequestLimits& limits);
  ~RequestParser();
  RequestParser(RequestParser&&) = delete;

  // Takes bytes from the front of `bytes` and says how many; the rest is offered again with more
  // behind it, or belongs to the next request. What can stay untaken has the limit
  // header_bytes_max. REQUIRES: neither complete() nor fault().
  std::size_t feed(std::string_view bytes);

  bool complete() const;
  // Why this can never become a request; the connection cannot be used any more.
  const std::optional<Refusal>& fault() const;

  // The head is complete, nothing of the body has come, and the client waits to be told to send it.
  bool awaits_continue() const;
  std::size_t body_bytes() const;  // That have come so far.
  // How many bytes are worth reading next.
  std::size_t wanted() const;
  // As far as it has come.
  const api::Inquiry& inquiry() const;
  // REQUIRES: complete().
  bool keep_alive() const;
  bool is_http_1_0() const;
  api::Inquiry take_inquiry();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fermata::http
