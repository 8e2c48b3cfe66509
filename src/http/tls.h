// TLS of accepted connections, by OpenSSL on the socket itself: no buffers between, and an idle
// session holds none of its own.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>

struct ssl_st;
struct ssl_ctx_st;

namespace fermata::http {

// Key and certificate of a server. Constant, thread-safe.
class TlsContext {
 public:
  // Reads both files (PEM; the certificate's chain may follow it). TLS 1.2 and later, ALPN
  // http/1.1. The error is one line with the mend.
  static Result<std::unique_ptr<TlsContext>, std::string> load(const std::string& key_file,
                                                               const std::string& cert_file);

 private:
  friend class TlsSession;
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

// What one step of a session came to.
struct TlsStep {
  enum class Need : unsigned char {
    nothing,   // It is done, or has failed.
    readable,  // Again with the same arguments when the socket is readable ...
    writable,  // ... or writable.
  };
  boost::system::error_code error = {};
  std::size_t bytes = 0;
  Need need = Need::nothing;
};

// The server's side of one connection. Used by one thread. Never blocks.
class TlsSession {
 public:
  // REQUIRES: `socket` does not block, is open at each call, and SIGPIPE is ignored.
  TlsSession(const TlsContext& context, int socket);

  TlsStep shake_hands();
  // The end of the client's side is the error eof.
  TlsStep read(std::span<char> into);
  // At most one record is written at a time.
  TlsStep write(std::span<const boost::asio::const_buffer> parts);
  // Tells the client that nothing more comes.
  void shut_down();

 private:
  TlsStep outcome(int returned);
  struct Free {
    void operator()(ssl_st* session) const;
  };
  std::unique_ptr<ssl_st, Free> session_;
};

}  // namespace fermata::http
