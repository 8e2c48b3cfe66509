// The only thing that touches a client's socket: TCP or Unix, plain or TLS.
#pragma once

#include "http/output_bytes.h"
#include "http/tls.h"

#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace fermata::http {

// Bound to the concrete executor of an event loop: no type erasure on the way of a token.
using LoopExecutor = boost::asio::io_context::executor_type;
template <class T>
using Task = boost::asio::awaitable<T, LoopExecutor>;
using UseTask = boost::asio::use_awaitable_t<LoopExecutor>;
inline constexpr UseTask use_task;
inline constexpr boost::asio::as_tuple_t<UseTask> use_task_tuple{use_task};

// TCP and Unix sockets are one type.
using Protocol = boost::asio::generic::stream_protocol;
using Socket = boost::asio::basic_stream_socket<Protocol, LoopExecutor>;
using ErrorCode = boost::system::error_code;

// Used from its event loop's thread only. At most one read and one write at a time.
class Transport {
 public:
  explicit Transport(Socket socket) : socket_(std::move(socket)) {}

  // Non-blocking, and small writes leave at once. TCP speaks TLS where there is a context, which
  // outlives the transport; a Unix socket never does. False: the client is gone already.
  bool open(const TlsContext* tls);

  // Before the first byte. An error, or none.
  Task<ErrorCode> shake_hands();

  // handler(ErrorCode, std::size_t), never within the call; `into` stays valid until then.
  template <class Handler>
  void read_some(std::span<char> into, Handler handler) {
    if (!tls_) {
      socket_.async_read_some(boost::asio::buffer(into.data(), into.size()), std::move(handler));
      return;
    }
    const TlsStep step = is_open() ? tls_->read(into) : closed();
    if (step.need == TlsStep::Need::nothing) {
      boost::asio::post(socket_.get_executor(), [step, handler = std::move(handler)]() mutable {
        handler(step.error, step.bytes);
      });
    } else {
      read_when_ready(step.need, into, std::move(handler));
    }
  }

  // What the socket takes without waiting; would_block when that is nothing.
  std::size_t write_now(const OutputBytes& bytes, ErrorCode& error);
  Task<std::tuple<ErrorCode, std::size_t>> write_some(const OutputBytes& bytes);

  // Ends what is under way with operation_aborted. The socket stays usable.
  void cancel() {
    ErrorCode ignored;
    socket_.cancel(ignored);
  }

  // Tells the client that nothing more comes.
  void shutdown_send();

  // Also ends what is under way.
  void close() {
    ErrorCode ignored;
    socket_.close(ignored);
  }

  // Whether the client has shut down its side or the connection is broken, found without reading:
  // also behind bytes that nobody has read yet.
  bool peer_has_closed();

 private:
  using Wait = boost::asio::socket_base::wait_type;

  // A closed descriptor may be another connection's by now: TLS does not touch it.
  bool is_open() const { return socket_.is_open(); }
  static TlsStep closed() { return {.error = boost::asio::error::operation_aborted}; }
  static Wait wait_for(TlsStep::Need need) {
    return need == TlsStep::Need::writable ? Wait::wait_write : Wait::wait_read;
  }

  template <class Handler>
  void read_when_ready(TlsStep::Need need, std::span<char> into, Handler handler) {
    socket_.async_wait(wait_for(need),
                       [this, into, handler = std::move(handler)](ErrorCode error) mutable {
                         if (!error && !is_open()) error = closed().error;
                         if (error) {
                           handler(error, std::size_t{0});
                           return;
                         }
                         const TlsStep step = tls_->read(into);
                         if (step.need == TlsStep::Need::nothing) {
                           handler(step.error, step.bytes);
                         } else {
                           read_when_ready(step.need, into, std::move(handler));
                         }
                       });
  }

  Socket socket_;
  std::unique_ptr<TlsSession> tls_;  // Goes before its socket does.
};

}  // namespace fermata::http
