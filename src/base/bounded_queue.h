// The only way values cross threads: a queue with a limit, whose fullness is a named answer.
#pragma once

#include "base/check.h"
#include "base/types.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace fermata {

enum class PushOutcome : unsigned char {
  pushed,
  full,    // At its limit; nothing was changed. The caller names it to whoever asked.
  closed,  // The reader has gone; nothing was changed.
};

// Many writers, one reader that takes everything there is at its own pace. All methods are
// thread-safe.
template <class T>
class BoundedQueue {
 public:
  // REQUIRES: limit > 0.
  explicit BoundedQueue(std::size_t limit) : limit_(limit) {
    FERMATA_CHECK(limit > 0, "a queue that holds nothing");
  }

  // `value` is moved from only when the outcome is `pushed`.
  [[nodiscard]] PushOutcome push(T&& value) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return PushOutcome::closed;
      if (items_.size() >= limit_) return PushOutcome::full;
      items_.push_back(std::move(value));
    }
    ready_.notify_one();
    return PushOutcome::pushed;
  }

  // Swaps the waiting items into `out` (cleared first; reusing it saves allocation). Never blocks.
  void drain(std::vector<T>& out) {
    out.clear();
    const std::lock_guard lock(mutex_);
    out.swap(items_);
  }

  // Blocks until an item waits or poke() or close() was called since the last wait(), or, given a
  // time, at most so long.
  void wait(std::optional<Micros> most = std::nullopt) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return !items_.empty() || poked_; };
    if (most) {
      ready_.wait_for(lock, std::chrono::microseconds(most->value), ready);
    } else {
      ready_.wait(lock, ready);
    }
    poked_ = false;
  }

  // Ends one wait() without an item.
  void poke() {
    {
      const std::lock_guard lock(mutex_);
      poked_ = true;
    }
    ready_.notify_one();
  }

  // Later pushes answer `closed`; items already in stay for drain().
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      poked_ = true;
    }
    ready_.notify_all();
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<T> items_;
  bool closed_ = false;
  bool poked_ = false;
};

}  // namespace fermata
