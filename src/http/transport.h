// The only thing that touches a client's socket. A transport of another kind (TLS, a Unix socket)
// takes its place with the same operations.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace fermata::http {

// Bound to the concrete executor of an event loop: no type erasure on the way of a token.
using LoopExecutor = boost::asio::io_context::executor_type;
template <class T>
using Task = boost::asio::awaitable<T, LoopExecutor>;
using UseTask = boost::asio::use_awaitable_t<LoopExecutor>;
inline constexpr UseTask use_task;
inline constexpr boost::asio::as_tuple_t<UseTask> use_task_tuple{use_task};

using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, LoopExecutor>;
using ErrorCode = boost::system::error_code;

// Bytes that are sent in one go without being copied together.
class OutputBytes {
 public:
  OutputBytes(std::string_view first, std::string_view second, std::string_view third)
      : parts_{to_buffer(first), to_buffer(second), to_buffer(third)} {}

  const std::array<boost::asio::const_buffer, 3>& buffers() const { return parts_; }
  std::size_t size() const { return boost::asio::buffer_size(parts_); }
  void consume(std::size_t n) {
    for (boost::asio::const_buffer& part : parts_) {
      const std::size_t here = n < part.size() ? n : part.size();
      part += here;
      n -= here;
    }
  }

 private:
  static boost::asio::const_buffer to_buffer(std::string_view bytes) {
    return {bytes.data(), bytes.size()};
  }
  std::array<boost::asio::const_buffer, 3> parts_;
};

// Used from its event loop's thread only. At most one read and one write at a time.
class Transport {
 public:
  explicit Transport(Socket socket) : socket_(std::move(socket)) {}

  // Non-blocking, and small writes leave at once. False: the client is gone already.
  bool open() {
    ErrorCode error;
    socket_.non_blocking(true, error);
    if (!error) socket_.set_option(boost::asio::ip::tcp::no_delay(true), error);
    return !error;
  }

  // handler(ErrorCode, std::size_t); `into` stays valid until then.
  template <class Handler>
  void read_some(std::span<char> into, Handler&& handler) {
    socket_.async_read_some(boost::asio::buffer(into.data(), into.size()),
                            std::forward<Handler>(handler));
  }

  // What the socket takes without waiting; would_block when that is nothing.
  std::size_t write_now(const OutputBytes& bytes, ErrorCode& error) {
    return socket_.write_some(bytes.buffers(), error);
  }

  auto write_some(const OutputBytes& bytes) {
    return socket_.async_write_some(bytes.buffers(), use_task_tuple);
  }

  // Ends the read and the write under way with operation_aborted. The socket stays usable.
  void cancel() {
    ErrorCode ignored;
    socket_.cancel(ignored);
  }

  // Tells the client that nothing more comes.
  void shutdown_send() {
    ErrorCode ignored;
    socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
  }

  // Also ends what is under way.
  void close() {
    ErrorCode ignored;
    socket_.close(ignored);
  }

  // Whether the client has shut down its side or the connection is broken, found without reading:
  // also behind bytes that nobody has read yet.
  bool peer_has_closed();

 private:
  Socket socket_;
};

}  // namespace fermata::http
