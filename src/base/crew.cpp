#include "base/crew.h"

namespace fermata {

Crew::Crew(std::int32_t helpers) {
  for (std::int32_t i = 0; i < helpers; ++i) helpers_.emplace_back([this] { help(); });
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  begun_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Crew::run(std::size_t count, const std::function<void(std::size_t)>& job) {
  std::unique_lock lock(mutex_);
  job_ = &job;
  count_ = left_ = count;
  next_ = 0;
  if (count > 1 && !helpers_.empty()) begun_.notify_all();
  work(lock);
  done_.wait(lock, [this] { return left_ == 0; });
}

void Crew::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [this] { return ends_ || next_ < count_; });
    if (ends_) return;
    work(lock);
  }
}

void Crew::work(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) {
    const std::size_t mine = next_++;
    lock.unlock();
    (*job_)(mine);
    lock.lock();
    if (--left_ == 0) done_.notify_one();
  }
}

}  // namespace fermata
