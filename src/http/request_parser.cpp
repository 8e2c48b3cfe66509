// The one place that includes Beast's parser. Its debug assertions are off: one of them assumes
// that the end of a chunked body does not arrive byte by byte, and a client must not be able to
// end the process (the code behind it copes; tests feed it byte by byte).
#define BOOST_DISABLE_ASSERTS

#include "http/request_parser.h"

#include "base/check.h"
#include "http/target.h"

#include <algorithm>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <spdlog/fmt/fmt.h>

namespace fermata::http {
namespace {

namespace beast = boost::beast;
using BeastError = beast::http::error;
using beast::error_code;

// A body up to this size is allocated when its length is announced; a larger one when this much
// of it has really come.
constexpr std::size_t body_trusted_bytes = std::size_t{64} * 1024;

constexpr std::size_t head_read_bytes = 4096;
constexpr std::size_t chunked_read_bytes = 16 * 1024;
constexpr std::uint64_t body_read_bytes_max = 64 * 1024;

char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

api::Method to_method(beast::http::verb verb) {
  switch (verb) {
    case beast::http::verb::get:
      return api::Method::get;
    case beast::http::verb::post:
      return api::Method::post;
    case beast::http::verb::put:
      return api::Method::put;
    case beast::http::verb::delete_:
      return api::Method::del;
    case beast::http::verb::options:
      return api::Method::options;
    case beast::http::verb::head:
      return api::Method::head;
    default:
      return api::Method::other;
  }
}

Refusal header_too_large(std::size_t limit) {
  return {.status = 431,
          .message = fmt::format("request line and headers are larger than {} bytes", limit)};
}

Refusal to_refusal(const error_code& error, const RequestLimits& limits) {
  if (error == BeastError::header_limit) return header_too_large(limits.header_bytes_max);
  if (error == BeastError::body_limit) {
    return {.status = 413,
            .message = fmt::format("request body is larger than {} bytes", limits.body_bytes_max)};
  }
  if (error == BeastError::bad_version) {
    return {.status = 505,
            .type = "not_supported_error",
            .message = "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  }
  // The messages of the library name the offending part ("bad method") and quote nothing.
  return {.status = 400, .message = fmt::format("malformed HTTP request: {}", error.message())};
}

}  // namespace

class RequestParser::Impl final : public beast::http::basic_parser<true> {
 public:
  explicit Impl(const RequestLimits& limits) : limits_(limits) {
    eager(true);
    header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
    body_limit(limits.body_bytes_max);
  }

  std::size_t take(std::string_view bytes) {
    std::size_t taken = 0;
    if (!is_header_done()) {
      taken = take_header(bytes.substr(0, limits_.header_bytes_max - header_bytes_));
      if (fault_ || is_done() || !is_header_done()) return taken;
    }
    return taken + take_body(bytes.substr(taken));
  }

  const std::optional<Refusal>& fault() const { return fault_; }
  bool awaits_continue() const {
    return is_header_done() && !is_done() && expects_continue_ && !http_1_0_ &&
           inquiry_.body.empty();
  }
  std::size_t body_bytes() const { return inquiry_.body.size(); }
  std::size_t wanted() const {
    if (!is_header_done()) return head_read_bytes;
    const auto remaining = content_length_remaining();
    if (!remaining) return chunked_read_bytes;
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(*remaining, 1, body_read_bytes_max));
  }
  bool is_http_1_0() const { return http_1_0_; }
  const api::Inquiry& inquiry() const { return inquiry_; }
  api::Inquiry take_inquiry() { return std::move(inquiry_); }

 private:
  // The library's own header limit is per piece that is parsed at once, so the sum is kept here.
  std::size_t take_header(std::string_view bytes) {
    const std::size_t taken = put_bytes(bytes);
    header_bytes_ += taken;
    const std::size_t untaken = bytes.size() - taken;
    if (!fault_ && !is_header_done() && header_bytes_ + untaken >= limits_.header_bytes_max) {
      fault_ = header_too_large(limits_.header_bytes_max);
    }
    return taken;
  }

  // The size line of a chunk and the trailers have no limit in the library.
  std::size_t take_body(std::string_view bytes) {
    const std::size_t taken = put_bytes(bytes);
    if (!fault_ && !is_done() && bytes.size() - taken >= limits_.header_bytes_max) {
      fault_ = Refusal{.status = 400, .message = "malformed HTTP request: endless chunk header"};
    }
    return taken;
  }

  std::size_t put_bytes(std::string_view bytes) {
    if (bytes.empty()) return 0;
    error_code error;
    const std::size_t taken = put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (error && error != BeastError::need_more && !fault_) fault_ = to_refusal(error, limits_);
    return taken;
  }

  void on_request_impl(beast::http::verb verb, beast::string_view /*name*/,
                       beast::string_view target, int version, error_code& error) override {
    std::optional<Target> parsed = fermata::http::parse_target({target.data(), target.size()});
    if (!parsed) {
      error = BeastError::bad_target;
      return;
    }
    inquiry_.method = to_method(verb);
    inquiry_.path = std::move(parsed->path);
    inquiry_.query = std::move(parsed->query);
    http_1_0_ = version == 10;
  }

  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     error_code& /*error*/) override {
    if (head_seen_) return;  // Trailers carry nothing that we use.
    std::string lower(name.data(), name.size());
    std::ranges::transform(lower, lower.begin(), ascii_lower);
    if (field == beast::http::field::transfer_encoding) has_transfer_encoding_ = true;
    if (field == beast::http::field::host) ++hosts_;
    if (field == beast::http::field::expect) {
      (beast::iequals(value, "100-continue") ? expects_continue_ : expects_more_) = true;
    }
    if (field == beast::http::field::content_encoding && !beast::iequals(value, "identity")) {
      is_encoded_ = true;
    }
    inquiry_.headers.emplace_back(std::move(lower), std::string(value.data(), value.size()));
  }

  void on_header_impl(error_code& error) override {
    head_seen_ = true;
    fault_ = head_fault();
    if (fault_) error = BeastError::bad_field;
  }

  // What the library leaves to its user.
  std::optional<Refusal> head_fault() {
    if (has_transfer_encoding_ && !chunked()) {
      return Refusal{.status = 501,
                     .type = "not_supported_error",
                     .message = "the only transfer encoding understood here is chunked"};
    }
    if (hosts_ > 1 || (hosts_ == 0 && !http_1_0_)) {
      return Refusal{.status = 400,
                     .message = "malformed HTTP request: HTTP/1.1 needs exactly one Host header"};
    }
    if (is_encoded_) {
      return Refusal{
          .status = 415,
          .message = "Content-Encoding: bodies are not decompressed here; send it plain"};
    }
    if (expects_more_ && !http_1_0_) {
      return Refusal{.status = 417, .message = "Expect: only 100-continue is understood here"};
    }
    return std::nullopt;
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>& length,
                         error_code& /*error*/) override {
    announced_ = length ? static_cast<std::size_t>(*length) : 0;
    inquiry_.body.reserve(std::min(announced_, body_trusted_bytes));
  }

  std::size_t on_body_impl(beast::string_view part, error_code& /*error*/) override {
    std::string& body = inquiry_.body;
    if (body.size() + part.size() > body.capacity() && announced_ > body.capacity()) {
      body.reserve(announced_);
    }
    body.append(part.data(), part.size());
    return part.size();
  }

  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, beast::string_view part,
                                 error_code& /*error*/) override {
    inquiry_.body.append(part.data(), part.size());
    return part.size();
  }

  void on_chunk_header_impl(std::uint64_t /*size*/, beast::string_view /*extensions*/,
                            error_code& /*error*/) override {}
  void on_response_impl(int /*code*/, beast::string_view /*reason*/, int /*version*/,
                        error_code& /*error*/) override {}
  void on_finish_impl(error_code& /*error*/) override {}

  const RequestLimits limits_;
  api::Inquiry inquiry_;
  std::optional<Refusal> fault_;
  std::size_t header_bytes_ = 0;
  std::size_t announced_ = 0;
  bool head_seen_ = false;
  bool has_transfer_encoding_ = false;
  bool expects_continue_ = false;
  bool expects_more_ = false;
  bool is_encoded_ = false;
  int hosts_ = 0;
  bool http_1_0_ = false;
};

RequestParser::RequestParser(const RequestLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view bytes) {
  FERMATA_CHECK(!complete() && !fault(), "a parser is used for one request");
  return impl_->take(bytes);
}

bool RequestParser::complete() const { return !impl_->fault() && impl_->is_done(); }
const std::optional<Refusal>& RequestParser::fault() const { return impl_->fault(); }
bool RequestParser::awaits_continue() const { return impl_->awaits_continue(); }
std::size_t RequestParser::body_bytes() const { return impl_->body_bytes(); }
std::size_t RequestParser::wanted() const { return impl_->wanted(); }
const api::Inquiry& RequestParser::inquiry() const { return impl_->inquiry(); }
bool RequestParser::keep_alive() const { return impl_->keep_alive(); }
bool RequestParser::is_http_1_0() const { return impl_->is_http_1_0(); }
api::Inquiry RequestParser::take_inquiry() { return impl_->take_inquiry(); }

}  // namespace fermata::http
