#include "http/worker_pool.h"

#include "base/check.h"

#include <algorithm>

namespace fermata::http {

WorkerPool::WorkerPool(int threads, std::size_t waiting_max) : waiting_max_(waiting_max) {
  FERMATA_CHECK(threads > 0, "a pool without threads");
  FERMATA_CHECK(waiting_max > 0, "a queue that holds nothing");
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

WorkerPool::~WorkerPool() { close(); }

std::optional<WorkerPool::Ticket> WorkerPool::submit(Task task) {
  Ticket ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || waiting_.size() >= waiting_max_) return std::nullopt;
    ticket = next_ticket_++;
    waiting_.push_back({ticket, std::move(task)});
  }
  ready_.notify_one();
  return ticket;
}

void WorkerPool::withdraw(Ticket ticket) {
  Task withdrawn;  // Destroyed after the lock is released: it may own a large body.
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(waiting_, ticket, &Waiting::ticket);
  if (found == waiting_.end()) return;
  withdrawn = std::move(found->task);
  waiting_.erase(found);
}

void WorkerPool::close() {
  Queue unrun;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    unrun.swap(waiting_);
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::work() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
      if (closed_) return;
      task = std::move(waiting_.front().task);
      waiting_.pop_front();
    }
    task();
  }
}

}  // namespace fermata::http
