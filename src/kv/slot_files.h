// The folder of --slot-save-path, for a thread that must never wait: one worker reads and writes.
#pragma once

#include "base/bounded_queue.h"
#include "base/byte_buffer.h"
#include "base/result.h"
#include "base/types.h"
#include "core/request.h"
#include "store/files.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace fermata::kv {

using SlotTicket = Id<struct SlotTicketTag, std::uint64_t>;  // The caller's own number.

struct SlotFilesOptions {
  std::string folder;
  // Each owner has a folder of its own in it, that the others do not see.
  bool by_owner = false;
  // After something can be reaped; on the worker's thread. Must not block.
  std::function<void()> wake;
};

struct SlotFileDone {
  SlotTicket ticket;
  int error = 0;                 // 0, or an errno.
  std::vector<std::byte> bytes;  // Of a read.
};

// Thread-safe.
class SlotFiles {
 public:
  static constexpr std::size_t in_flight_max = 8;

  // The error is one line: what, why, mend.
  static Result<std::unique_ptr<SlotFiles>, std::string> open(SlotFilesOptions options);
  // What waits to be written is written first.
  ~SlotFiles();
  SlotFiles(const SlotFiles&) = delete;
  SlotFiles& operator=(const SlotFiles&) = delete;

  // False: too much is under way. Else one SlotFileDone comes. A write leaves the older file of
  // that name whole until the new one is. REQUIRES: is_slot_file_name(name).
  [[nodiscard]] bool write(SlotTicket ticket, const Owner& owner, std::string name,
                           std::vector<std::byte> head, ByteBuffer state);
  [[nodiscard]] bool read(SlotTicket ticket, const Owner& owner, std::string name, Bytes most);
  // Moves what is done to the end of `out`.
  void reap(std::vector<SlotFileDone>& out);

 private:
  struct Job {
    SlotTicket ticket;
    Owner owner{};
    std::string name;
    bool is_write = false;
    std::vector<std::byte> head;
    ByteBuffer state;
    Bytes most;
  };

  SlotFiles(SlotFilesOptions options, store::Folder folder);
  bool push(Job job);
  void work();
  int run(const Job& job, SlotFileDone& done) const;

  const SlotFilesOptions options_;
  const store::Folder folder_;
  BoundedQueue<Job> jobs_{in_flight_max};
  BoundedQueue<SlotFileDone> done_{in_flight_max};
  std::atomic<std::size_t> in_flight_{0};
  std::atomic<bool> closing_{false};
  std::vector<SlotFileDone> reaped_;
  std::thread worker_;
};

}  // namespace fermata::kv
