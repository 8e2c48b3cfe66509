#include "http/tls.h"

#include "base/check.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include <boost/asio/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <spdlog/fmt/fmt.h>

namespace fermata::http {
namespace {

constexpr std::size_t record_bytes = std::size_t{16} * 1024;
constexpr std::string_view spoken = "\x08http/1.1";

std::string last_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "it cannot be used" : reason;
}

int choose_protocol(SSL* /*session*/, const unsigned char** out, unsigned char* out_length,
                    const unsigned char* offered, unsigned offered_length, void* /*context*/) {
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, out_length, reinterpret_cast<const unsigned char*>(&spoken[0]),
                            static_cast<unsigned>(spoken.size()), offered, offered_length);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Nobody is asked for a password: a server starts without a terminal.
int no_password(char* /*into*/, int /*size*/, int /*writing*/, void* /*context*/) { return 0; }

Result<void, std::string> check_readable(std::string_view flag, const std::string& file) {
  errno = 0;
  std::ifstream in(file);
  if (in && in.peek() != std::ifstream::traits_type::eof()) return {};
  const char* const why = errno == 0 ? "it is empty" : std::strerror(errno);
  return Err{fmt::format("{}: cannot read '{}': {}; give a PEM file", flag, file, why)};
}

void configure(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(context, no_password);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void TlsSession::Free::operator()(ssl_st* session) const { SSL_free(session); }

Result<std::unique_ptr<TlsContext>, std::string> TlsContext::load(const std::string& key_file,
                                                                  const std::string& cert_file) {
  if (auto readable = check_readable("--ssl-cert-file", cert_file); !readable) {
    return Err{readable.error()};
  }
  if (auto readable = check_readable("--ssl-key-file", key_file); !readable) {
    return Err{readable.error()};
  }
  auto out = std::make_unique<TlsContext>();
  out->context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = out->context_.get();
  FERMATA_CHECK(context != nullptr, "OpenSSL makes a context");
  configure(context);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, cert_file.c_str()) != 1) {
    return Err{fmt::format("--ssl-cert-file: '{}' is no certificate in PEM form ({})", cert_file,
                           last_reason())};
  }
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Err{fmt::format(
        "--ssl-key-file: '{}' is no private key in PEM form without a password, or not the "
        "certificate's ({})",
        key_file, last_reason())};
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    return Err{fmt::format("--ssl-key-file: '{}' is not the key of the certificate '{}'", key_file,
                           cert_file)};
  }
  return out;
}

TlsSession::TlsSession(const TlsContext& context, int socket)
    : session_(SSL_new(context.context_.get())) {
  FERMATA_CHECK(session_ != nullptr, "OpenSSL makes a session");
  FERMATA_CHECK(SSL_set_fd(session_.get(), socket) == 1, "OpenSSL takes a socket");
  SSL_set_accept_state(session_.get());
}

TlsStep TlsSession::shake_hands() {
  ERR_clear_error();
  return outcome(SSL_accept(session_.get()));
}

TlsStep TlsSession::read(std::span<char> into) {
  ERR_clear_error();
  std::size_t count = 0;
  TlsStep step = outcome(SSL_read_ex(session_.get(), into.data(), into.size(), &count));
  step.bytes = count;
  return step;
}

TlsStep TlsSession::write(std::span<const boost::asio::const_buffer> parts) {
  std::array<char, record_bytes> record;
  const std::size_t size = boost::asio::buffer_copy(boost::asio::buffer(record), parts);
  ERR_clear_error();
  std::size_t count = 0;
  TlsStep step = outcome(SSL_write_ex(session_.get(), record.data(), size, &count));
  step.bytes = count;
  return step;
}

void TlsSession::shut_down() {
  ERR_clear_error();
  if (SSL_is_init_finished(session_.get()) == 1) SSL_shutdown(session_.get());
}

TlsStep TlsSession::outcome(int returned) {
  if (returned == 1) return {};
  switch (SSL_get_error(session_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
      return {.need = TlsStep::Need::readable};
    case SSL_ERROR_WANT_WRITE:
      return {.need = TlsStep::Need::writable};
    case SSL_ERROR_ZERO_RETURN:
      return {.error = boost::asio::error::eof};
    default:
      return {.error = boost::asio::error::connection_reset};
  }
}

}  // namespace fermata::http
