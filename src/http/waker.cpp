#include "http/waker.h"

#include <boost/asio/post.hpp>

namespace fermata::http {

void Waker::wake() {
  // Paired with rearm(): whoever finds it pending has published its news before the reader that
  // rearms looks.
  if (pending_.exchange(true, std::memory_order_acq_rel)) return;
  const std::lock_guard lock(mutex_);
  if (loop_ == nullptr) return;
  boost::asio::post(*loop_, [self = shared_from_this()] { self->deliver(); });
}

void Waker::detach() {
  target_ = nullptr;
  const std::lock_guard lock(mutex_);
  loop_ = nullptr;
}

void Waker::deliver() {
  if (target_ != nullptr) target_->on_wake();
}

}  // namespace fermata::http
