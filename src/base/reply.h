// One value on its way to another thread.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace fermata {

// Both sides share it; either may be destroyed first.
template <class T>
class Reply {
 public:
  // The giver's side. Called once.
  void give(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    if (wake_) wake_();
  }
  // The taker does not want it any more.
  const std::atomic<bool>& abandoned() const { return abandoned_; }

  // The taker's side. `wake` is called when the value is there; it must be cheap and must not call
  // back.
  void wake_with(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
    if (value_ && wake_) wake_();
  }
  // The value, once.
  std::optional<T> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(value_, std::nullopt);
  }
  void abandon() {
    wake_with(nullptr);
    abandoned_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::optional<T> value_;
  std::function<void()> wake_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace fermata
