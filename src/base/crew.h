// A few threads that share the jobs of one batch with the thread that asks, for work that is too
// short for a queue.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fermata {

class Crew {
 public:
  // Without helpers run() does everything itself.
  explicit Crew(std::int32_t helpers);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Calls job(0) .. job(count - 1), each once and on any of the threads, and returns when all have.
  // REQUIRES: job does not throw; one caller at a time.
  void run(std::size_t count, const std::function<void(std::size_t)>& job);

 private:
  void help();
  void work(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable begun_, done_;
  const std::function<void(std::size_t)>* job_ = nullptr;
  std::size_t count_ = 0, next_ = 0, left_ = 0;
  bool ends_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace fermata
