// The seam between bytes and meaning. http hands in one request as bytes and pulls the answer as
// bytes, at the pace of the socket; what is not pulled stays in the request's bounded channel, and
// the scheduler sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fermata::api {

enum class Method : unsigned char { get, post, put, del, options, head, other };
// As in a request line; "-" for `other`.
std::string_view name(Method method);

// One HTTP request, body complete. Header names are lower case.
struct Inquiry {
  Method method = Method::get;
  std::string path;   // Percent-decoded, without the query and without --api-prefix.
  std::string query;  // Raw, without '?'.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// First matching header, or empty.
std::string_view header(const Inquiry& inquiry, std::string_view lower_case_name);

struct Head {
  int status = 200;
  std::string content_type = "application/json; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  bool stream = false;  // The body comes in pieces, each sent at once (SSE).
  // Of a stream's body, where it is known; else it is chunked.
  std::optional<std::uint64_t> length{};
};

// What is ready to be sent. The first piece with a head comes before any body bytes; with
// !head->stream that piece holds the whole body and is the last.
struct Piece {
  std::optional<Head> head;
  std::string body;
  bool done = false;
  bool broken = false;  // Of a stream: nothing more comes, and the client shall see that it is cut.
};

// One answer in the making. Pulled by one reader; all calls on the reader's side, one at a time.
// Destroying it before `done` abandons the request: its cells are freed within one ubatch.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Never blocks. An empty piece (no head, no body, not done) means: nothing yet.
  virtual Piece pull() = 0;
  // `wake` is called from any thread, at least once after something new can be pulled, until the
  // next pull; it must be cheap and must not call back into this object. Set once, before pull().
  virtual void wake_with(std::function<void()> wake) = 0;
  // Bytes to send after `--sse-ping-interval` of silence on a stream.
  virtual std::string_view ping() const = 0;
  // Seconds of silence before a ping; 0: never.
  virtual int ping_interval_seconds() const = 0;
};

// Answers requests. Thread-safe.
class Service {
 public:
  virtual ~Service() = default;
  // Parses, templates, tokenizes, compiles grammars: may take long, call it on a worker.
  // Never null, never throws: what is wrong comes back as an error answer.
  virtual std::unique_ptr<Exchange> begin(Inquiry inquiry) = 0;
  // Cheap requests (health, props, slots, metrics, models) that I/O threads may answer in place.
  virtual bool is_cheap(const Inquiry& inquiry) const = 0;
};

// An answer that is complete already.
std::unique_ptr<Exchange> ready_exchange(Head head, std::string body);

}  // namespace fermata::api
