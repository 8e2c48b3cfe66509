// What a connection's coroutine sleeps on.
#pragma once

#include "http/transport.h"

#include <memory>
#include <utility>

#include <boost/asio/async_result.hpp>

namespace fermata::http {

// One coroutine waits; callbacks on the same thread raise. A raise resumes the waiter at once,
// inside the call and without a turn of the event loop: that is the path of every token.
//
//   while (!event.take()) co_await event.wait();
class Event {
 public:
  // Nothing of the event is touched after the waiter was resumed: it may have ended and destroyed
  // the event.
  void raise() {
    raised_ = true;
    if (const std::unique_ptr<Waiter> waiter = std::move(waiter_)) waiter->resume();
  }

  // Whether it was raised since the last take().
  bool take() { return std::exchange(raised_, false); }

  // REQUIRES: nobody else waits.
  Task<void> wait() {
    return boost::asio::async_initiate<const UseTask, void()>(
        [this](auto handler) {
          waiter_ = std::make_unique<WaiterOf<decltype(handler)>>(std::move(handler));
        },
        use_task);
  }

 private:
  struct Waiter {
    virtual ~Waiter() = default;
    virtual void resume() = 0;
  };
  template <class Handler>
  struct WaiterOf final : Waiter {
    explicit WaiterOf(Handler h) : handler(std::move(h)) {}
    void resume() override { std::move(handler)(); }
    Handler handler;
  };

  std::unique_ptr<Waiter> waiter_;
  bool raised_ = false;
};

}  // namespace fermata::http
