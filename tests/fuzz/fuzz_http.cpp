// One HTTP request out of bytes: however they are cut, the same request or the same refusal.
#include "http/request_parser.h"
#include "input.h"

#include <algorithm>

namespace fermata::fuzz {
namespace {

constexpr http::RequestLimits limits{.header_bytes_max = 512, .body_bytes_max = 256};

struct Parsed {
  int refused = 0;  // Status, or 0.
  bool complete = false;
  api::Inquiry inquiry;
  std::size_t taken = 0;
};

template <class Next>
Parsed parse(std::string_view text, Next next_size) {
  http::RequestParser parser(limits);
  Parsed out;
  std::size_t arrived = 0;
  while (!parser.complete() && !parser.fault() && arrived < text.size()) {
    arrived = std::min(text.size(), arrived + next_size());
    const std::size_t taken = parser.feed(text.substr(out.taken, arrived - out.taken));
    out.taken += taken;
    require(out.taken <= arrived, "no more is taken than came");
    if (parser.complete() || parser.fault()) break;
    require(parser.wanted() > 0, "who is not complete wants more");
    require(arrived - out.taken < limits.header_bytes_max, "what stays untaken is bounded");
    require(parser.body_bytes() <= limits.body_bytes_max, "a body is bounded");
  }
  out.complete = parser.complete();
  if (parser.fault()) {
    out.refused = parser.fault()->status;
    require(out.refused >= 400 && out.refused < 600, "a refusal is an error");
    require(!parser.fault()->message.empty(), "a refusal says why");
  }
  if (out.complete) {
    static_cast<void>(parser.keep_alive());
    out.inquiry = parser.take_inquiry();
    const std::string& path = out.inquiry.path;
    require(path == "*" || path.starts_with('/'), "a path begins with a slash", path);
    require(path.find('\0') == std::string::npos, "no NUL in a path", path);
    require(out.inquiry.body.size() <= limits.body_bytes_max, "a body is bounded");
  }
  return out;
}

void require_equal(const Parsed& one, const Parsed& other) {
  require(one.complete == other.complete, "complete however it came");
  if (!one.complete) return;
  require(one.taken == other.taken, "a request ends at one place");
  require(one.inquiry.method == other.inquiry.method && one.inquiry.path == other.inquiry.path &&
              one.inquiry.query == other.inquiry.query &&
              one.inquiry.headers == other.inquiry.headers &&
              one.inquiry.body == other.inquiry.body,
          "one meaning however it came");
}

void check(std::string_view text) {
  const Parsed whole = parse(text, [&] { return text.size(); });
  require_equal(whole, parse(text, [] { return std::size_t{1}; }));
  Sizes sizes(text);
  require_equal(whole, parse(text, [&] { return sizes.next(); }));
}

}  // namespace
}  // namespace fermata::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fermata::fuzz::check(fermata::fuzz::text_of(data, size));
  return 0;
}
