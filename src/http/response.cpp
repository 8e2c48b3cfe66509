#include "http/response.h"

#include "base/check.h"

#include <boost/beast/http/status.hpp>
#include <spdlog/fmt/fmt.h>

namespace fermata::http {
namespace {

void append_header(std::string& out, std::string_view name, std::string_view value) {
  const std::size_t start = out.size();
  out.append(name).append(": ").append(value);
  for (std::size_t i = start; i < out.size(); ++i) {
    if (out[i] == '\r' || out[i] == '\n' || out[i] == '\0') out[i] = ' ';
  }
  out.append("\r\n");
}

}  // namespace

bool forbids_body(int status) { return status < 200 || status == 204 || status == 304; }

std::string format_head(const api::Head& head, const HeadFrame& frame,
                        std::string_view server_name) {
  namespace beast_http = boost::beast::http;
  const auto reason =
      beast_http::obsolete_reason(beast_http::int_to_status(static_cast<unsigned>(head.status)));
  std::string out;
  out.reserve(256);
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", head.status,
                 fmt::string_view(reason.data(), reason.size()));
  append_header(out, "Server", server_name);
  if (!head.content_type.empty() && frame.framing != Framing::none)
    append_header(out, "Content-Type", head.content_type);
  for (const auto& [name, value] : head.headers) append_header(out, name, value);
  if (frame.framing == Framing::length) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", frame.length);
  } else if (frame.framing == Framing::chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
  if (!frame.keep_alive) {
    out.append("Connection: close\r\n");
  } else if (frame.http_1_0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
  return out;
}

std::string chunk_prefix(std::size_t size) {
  FERMATA_CHECK(size > 0, "an empty chunk ends the body");
  return fmt::format("{:x}\r\n", size);
}

api::Head refusal_head(const Refusal& refusal) {
  api::Head head;
  head.status = refusal.status;
  if (refusal.retry_after_seconds > 0) {
    head.headers.emplace_back("Retry-After", fmt::format("{}", refusal.retry_after_seconds));
  }
  return head;
}

std::string refusal_body(const Refusal& refusal) {
  return fmt::format(R"({{"error":{{"code":{},"message":"{}","type":"{}"}}}})", refusal.status,
                     refusal.message, refusal.type);
}

}  // namespace fermata::http
