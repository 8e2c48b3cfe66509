#include "api/accepted.h"

#include <utility>

namespace fermata::api {

ApiError stopping() {
  return {
      .type = ErrorType::unavailable, .message = "the server is shutting down", .retry_after_s = 1};
}

void check_accepted(scheduler::SubmitOutcome outcome, ErrorType full_type, std::string full,
                    std::int64_t retry_after_s) {
  switch (outcome) {
    case scheduler::SubmitOutcome::accepted:
      return;
    case scheduler::SubmitOutcome::queue_full:
      throw ApiError{.type = full_type, .message = std::move(full), .retry_after_s = retry_after_s};
    case scheduler::SubmitOutcome::stopping:
      break;
  }
  throw stopping();
}

}  // namespace fermata::api
