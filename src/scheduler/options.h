// How a scheduler works, and what it says to who asks something of it.
#pragma once

#include "base/types.h"
#include "core/geometry.h"
#include "engine/embedder.h"
#include "kv/archive.h"
#include "kv/slot_files.h"
#include "kv/spill.h"
#include "policy/policy.h"
#include "reconfigure/workshop.h"
#include "scheduler/sleeping.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace fermata::scheduler {

struct SchedulerOptions {
  std::size_t waiting_max = 1024;  // Requests without a seat; more are refused at once.
  std::size_t events_max = 256;    // Token events a client may leave unread.
  std::size_t holds_max = 64;      // Commands of operators that wait for the next tick.
  std::size_t questions_max = 64;  // About pages and slots, that wait for it.
  Micros step_budget{0};           // See policy::View.
  // Every sequence is computed in the shapes that it would have alone, so that its reply is
  // bit-identical, whatever happens around it and to it. The engine's layout is split, and it
  // computes one sequence at a time.
  bool deterministic = false;
  bool overcommit = true;  // false: only what fits in the worst case is admitted.
  policy::PreemptOptions preempt;
  std::optional<Bytes> preempt_ram = Bytes(std::int64_t{8} << 30);  // None: no limit.
  // For bytes of parked sequences on their way to what is slower, and back; 0: what does not fit in
  // preempt_ram is computed again.
  Bytes page_ram{std::int64_t{512} << 20};
  bool strictly_exact = false;  // preempt_ram 0 does not keep them from what is slower, either.
  // What is slower than RAM. None: the archive's store, if there is one.
  std::function<std::unique_ptr<kv::Spill>()> make_spill;
  // For conversations that nobody computes. None: no limit; 0: they are lost with their cells.
  std::optional<Bytes> cache_ram = Bytes(0);
  Tokens cache_min{32};     // Shorter ones are not kept.
  bool copies_idle = true;  // Copied ahead, while they are still in the pool.
  kv::ArchiveOptions archive;
  kv::SlotFiles* slot_files = nullptr;  // Outlives the scheduler; it pokes it.
  // None: the geometry stays what it is. Outlives the scheduler, and owns the engine.
  reconfigure::Workshop* workshop = nullptr;
  std::optional<reconfigure::Path> change_path;  // None: as memory allows.
  bool flash_attention = true;
  SleepOptions sleep;           // REQUIRES: a workshop, if it ever sleeps.
  Bytes bytes_per_token{0};     // What a swapped token takes, at most.
  Tokens block = block_tokens;  // What mirrors grow by.
  bool shows_texts = false;     // Replies are part of the status.
  // A sequence whose window is full goes on without some of its tokens, where the engine can.
  // REQUIRES: overcommit, not deterministic.
  bool context_shift = false;
  engine::Embedder* embedder = nullptr;  // Outlives the scheduler.
};

enum class SubmitOutcome : std::uint8_t {
  accepted,    // Exactly one final event will come.
  queue_full,  // Too many wait already. Nothing was taken.
  stopping,    // The server shuts down. Nothing was taken.
};

}  // namespace fermata::scheduler
