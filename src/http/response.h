// Answers as bytes: status lines, headers, chunks, and the error bodies that the front makes
// itself. Pure.
#pragma once

#include "api/exchange.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace fermata::http {

// How the client learns where the body ends.
enum class Framing : unsigned char {
  length,       // Content-Length
  chunked,      // Transfer-Encoding: chunked
  until_close,  // An HTTP/1.0 stream.
  none,         // The status allows no body.
};

struct HeadFrame {
  Framing framing = Framing::length;
  std::size_t length = 0;  // With Framing::length.
  bool keep_alive = true;
  bool http_1_0 = false;  // The client's version; it wants to be told of keep-alive.
};

// 1xx, 204 and 304.
bool forbids_body(int status);

// Status line and headers, up to the empty line. Line ends inside of values become spaces.
std::string format_head(const api::Head& head, const HeadFrame& frame,
                        std::string_view server_name);

// What stands before and after the bytes of one chunk. REQUIRES: size > 0 (an empty chunk would
// end the body).
std::string chunk_prefix(std::size_t size);
inline constexpr std::string_view chunk_suffix = "\r\n";
inline constexpr std::string_view last_chunk = "0\r\n\r\n";
inline constexpr std::string_view last_chunk_after_data = "\r\n0\r\n\r\n";

// An error answer of the front's own.
struct Refusal {
  int status = 400;
  std::string_view type = "invalid_request_error";
  std::string message;          // Our words, never the client's bytes.
  int retry_after_seconds = 0;  // 0: no Retry-After.
};

api::Head refusal_head(const Refusal& refusal);
// {"error":{"code":...,"message":"...","type":"..."}}
std::string refusal_body(const Refusal& refusal);

}  // namespace fermata::http
