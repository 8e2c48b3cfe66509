#include "http/transport.h"

#include <boost/asio/ip/tcp.hpp>
#include <poll.h>
#include <sys/socket.h>

namespace fermata::http {

bool Transport::open(const TlsContext* tls) {
  ErrorCode error;
  socket_.non_blocking(true, error);
  const auto endpoint = error ? Protocol::endpoint() : socket_.local_endpoint(error);
  if (error) return false;
  if (endpoint.protocol().family() == AF_UNIX) return true;
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), error);
  if (error) return false;
  if (tls != nullptr) tls_ = std::make_unique<TlsSession>(*tls, socket_.native_handle());
  return true;
}

Task<ErrorCode> Transport::shake_hands() {
  while (tls_) {
    const TlsStep step = is_open() ? tls_->shake_hands() : closed();
    if (step.need == TlsStep::Need::nothing) co_return step.error;
    const auto [error] = co_await socket_.async_wait(wait_for(step.need), use_task_tuple);
    if (error) co_return error;
  }
  co_return ErrorCode{};
}

std::size_t Transport::write_now(const OutputBytes& bytes, ErrorCode& error) {
  if (!tls_) return socket_.write_some(bytes.buffers(), error);
  const TlsStep step = is_open() ? tls_->write(bytes.buffers()) : closed();
  error = step.need == TlsStep::Need::nothing ? step.error : boost::asio::error::would_block;
  return step.bytes;
}

Task<std::tuple<ErrorCode, std::size_t>> Transport::write_some(const OutputBytes& bytes) {
  if (!tls_) co_return co_await socket_.async_write_some(bytes.buffers(), use_task_tuple);
  for (;;) {
    const TlsStep step = is_open() ? tls_->write(bytes.buffers()) : closed();
    if (step.need == TlsStep::Need::nothing) co_return std::tuple(step.error, step.bytes);
    const auto [error] = co_await socket_.async_wait(wait_for(step.need), use_task_tuple);
    if (error) co_return std::tuple(error, std::size_t{0});
  }
}

void Transport::shutdown_send() {
  if (!is_open()) return;
  if (tls_) tls_->shut_down();
  ErrorCode ignored;
  socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
}

bool Transport::peer_has_closed() {
  pollfd ask{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return poll(&ask, 1, 0) > 0;
}

}  // namespace fermata::http
