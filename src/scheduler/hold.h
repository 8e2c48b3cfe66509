// Parking by hand: an operator keeps a request out of the pool until he lets it back. Plain values
// go in; exactly one receipt comes out.
#pragma once

#include "base/reply.h"
#include "base/types.h"
#include "core/request.h"
#include "policy/policy.h"

#include <memory>
#include <optional>
#include <vector>

namespace fermata::scheduler {

enum class HoldAction : std::uint8_t { park, unpark };

enum class HoldOutcome : std::uint8_t {
  done,
  nobody_there,     // No request runs on the seat, or was parked from it by hand.
  no_such_request,  // Finished, or never was.
  not_on_seat,      // The request that is named is not the one of the seat that is named.
  not_parked,       // Nothing to let back.
  stopping,         // The server shuts down.
};

struct HoldReceipt {
  HoldOutcome outcome = HoldOutcome::done;
  RequestId id = {};
  std::optional<Seat> seat = {};              // Where it runs or, out of the pool, ran last.
  bool is_out = false;                        // It is out of the pool now, or held in the queue.
  std::optional<policy::ParkMode> mode = {};  // None: it is not parked, or holds nothing.
  Tokens tokens = {};                         // That it held when it was parked.
  Bytes bytes = {};                           // Of RAM that it holds now.
  Micros took = {};                           // From the command to its effect.
};

using HoldReply = Reply<HoldReceipt>;

// At least one of `seat` and `id` names the request; both must mean the same one.
struct HoldCommand {
  HoldAction action = HoldAction::park;
  std::optional<Seat> seat = {};
  std::optional<RequestId> id = {};
  Owner owner{};  // Whose requests it may name; others' are not there for it.
  std::shared_ptr<HoldReply> reply = {};
  Micros asked{0};  // Set by Scheduler::hold.
};

// By the scheduler: answered once the tick that heeds them is published.
struct CarriedOut {
  std::vector<HoldCommand> commands;
  std::vector<HoldReceipt> receipts;  // By index into them.
};

}  // namespace fermata::scheduler
