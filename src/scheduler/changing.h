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

#include "base/reply.h"
#include "reconfigure/change.h"
#include "reconfigure/transfer.h"

#include <memory>
#include <optional>

namespace fermata::scheduler {

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

}  // namespace fermata::scheduler
