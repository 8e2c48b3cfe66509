// A change of geometry on its way through the scheduler.
//
//   asked ──refused──────────────────────────────────────────────► receipt
//     │
//     ├─beside──► building ──failed─────────────────────────────► receipt (rolled back)
//     │              └─built─► moving ──only tails left─► install ► receipt
//     └─in place─► pack ► free ► build ──failed─► build the old one again ► receipt (rolled back)
//                                  └─built─► unpack ► install ► receipt
//
// While it moves nobody is admitted or resumed; all of `in place` happens between two steps.
#pragma once

#include "base/bounded_queue.h"
#include "base/reply.h"
#include "engine/absent.h"
#include "reconfigure/change.h"
#include "reconfigure/transfer.h"

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace fermata::scheduler {

constexpr Micros try_again_after{1'000'000};  // No context could be built.

using ChangeReply = Reply<reconfigure::Receipt>;

struct ChangeCommand {
  reconfigure::Change change;
  std::shared_ptr<ChangeReply> reply;
  Micros asked{0};  // Set by Scheduler::reconfigure.
};

enum class ChangeStage : std::uint8_t { building, moving };

struct Changing {
  ChangeCommand command;
  reconfigure::Plan plan;
  reconfigure::Receipt receipt;
  ChangeStage stage = ChangeStage::building;
  Micros since{0};                   // When the stage began.
  engine::Engine* engine = nullptr;  // The new one, once it is there.
  std::optional<reconfigure::Transfer> transfer;
  std::int32_t slices = 0;
};

struct Changes {
  BoundedQueue<ChangeCommand> queue{1};
  std::atomic<bool> is_asked{false};  // From the command to its receipt.
  std::unique_ptr<Changing> now;
  std::int64_t version = 1;  // Of the geometry.
  // This one is there while no context is: the server sleeps, or none could be built.
  std::optional<engine::AbsentEngine> absent;
  bool is_coming_back = false;  // One is being built.
  Micros since{0};              // When that began.
  Micros next_try{0};           // Not before.
  std::optional<Micros> fails_since;
  std::vector<ChangeCommand> drained;  // Reused.
};

}  // namespace fermata::scheduler
