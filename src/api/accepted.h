// What a client is told when the scheduler did not take what it asked for.
#pragma once

#include "api/error.h"
#include "scheduler/options.h"

#include <cstdint>
#include <string>

namespace fermata::api {

// 503 with Retry-After.
ApiError stopping();

// Returns when the command was accepted. Throws `stopping()`, or `full` with its Retry-After.
void check_accepted(scheduler::SubmitOutcome outcome, ErrorType full_type, std::string full,
                    std::int64_t retry_after_s = 1);

}  // namespace fermata::api
