// The bounded pool that runs Service::begin: parsing, templates, tokenizing.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace fermata::http {

// All methods are thread-safe.
class WorkerPool {
 public:
  using Task = std::function<void()>;  // Must not throw.
  using Ticket = std::uint64_t;

  // At most `waiting_max` tasks wait; those that run do not count.
  // REQUIRES: threads > 0, waiting_max > 0.
  WorkerPool(int threads, std::size_t waiting_max);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Empty: the queue is full or the pool is closed; the task will not run.
  [[nodiscard]] std::optional<Ticket> submit(Task task);
  // Takes a waiting task out and destroys it. No effect when it runs already or has ended.
  void withdraw(Ticket ticket);
  // Ends the threads; running tasks are waited for, waiting ones are destroyed unrun. Idempotent.
  void close();

 private:
  struct Waiting {
    Ticket ticket;
    Task task;
  };
  // BoundedQueue has one reader and no way to take one out of the middle.
  using Queue = std::deque<Waiting>;  // tidy: allow queue: submit() bounds it by waiting_max_
  void work();

  const std::size_t waiting_max_;
  std::mutex mutex_;  // Guards all below but the threads.
  std::condition_variable ready_;
  Queue waiting_;
  Ticket next_ticket_ = 1;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fermata::http
