// Stands before the service while the model loads: the port is taken and answers 503 from the first
// moment, and whoever waits for /health sees the server come up.
#pragma once

#include "api/exchange.h"

#include <atomic>

namespace fermata::app {

// Thread-safe.
class Gate final : public api::Service {
 public:
  std::unique_ptr<api::Exchange> begin(api::Inquiry inquiry) override;
  bool is_cheap(const api::Inquiry& inquiry) const override;

  // From now on requests go to `service`, which outlives the gate's use.
  void open(api::Service& service) { service_.store(&service, std::memory_order_release); }

 private:
  std::atomic<api::Service*> service_{nullptr};
};

}  // namespace fermata::app
