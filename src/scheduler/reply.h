// One receipt on its way from the scheduler to another thread.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace fermata::scheduler {

// Both sides share it; either may be destroyed first.
template <class Receipt>
class Reply {
 public:
  // The scheduler's side. Called once.
  void give(Receipt receipt) {
    const std::lock_guard lock(mutex_);
    receipt_ = std::move(receipt);
    if (wake_) wake_();
  }

  // The reader's side. `wake` is called when the receipt is there; it must be cheap and must not
  // call back.
  void wake_with(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
    if (receipt_ && wake_) wake_();
  }
  // The receipt, once.
  std::optional<Receipt> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(receipt_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<Receipt> receipt_;
  std::function<void()> wake_;
};

}  // namespace fermata::scheduler
