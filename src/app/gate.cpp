#include "app/gate.h"

#include "api/error.h"

namespace fermata::app {

std::unique_ptr<api::Exchange> Gate::begin(api::Inquiry inquiry) {
  if (api::Service* service = service_.load(std::memory_order_acquire)) {
    return service->begin(std::move(inquiry));
  }
  return api::error_exchange(
      {.type = api::ErrorType::unavailable, .message = "Loading model", .retry_after_s = 1});
}

bool Gate::is_cheap(const api::Inquiry& inquiry) const {
  const api::Service* service = service_.load(std::memory_order_acquire);
  return service == nullptr || service->is_cheap(inquiry);
}

}  // namespace fermata::app
