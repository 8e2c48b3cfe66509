// From any thread to a connection's event loop.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include <boost/asio/io_context.hpp>

namespace fermata::http {

// What is woken, on its event loop's thread.
class Wakeable {
 public:
  virtual ~Wakeable() = default;
  virtual void on_wake() = 0;
};

// Handed to an exchange as its wake function, and may outlive the connection and its event loop:
// whoever wakes late wakes nobody. Between two rearm() calls any number of wakes cost one message
// to the event loop; all but the first are one atomic exchange.
class Waker : public std::enable_shared_from_this<Waker> {
 public:
  // `target` and `loop` stay valid until detach().
  Waker(Wakeable& target, boost::asio::io_context& loop) : target_(&target), loop_(&loop) {}

  // Any thread. Does not touch the target, only its event loop's queue.
  void wake();

  // The event loop's thread only. Call before looking for news: what comes later wakes again.
  void rearm() { pending_.exchange(false, std::memory_order_acq_rel); }
  // The event loop's thread only. No wake reaches the target any more.
  void detach();

 private:
  void deliver();

  std::atomic<bool> pending_{false};
  Wakeable* target_;  // The event loop's thread only.
  std::mutex mutex_;  // Guards loop_.
  boost::asio::io_context* loop_;
};

}  // namespace fermata::http
