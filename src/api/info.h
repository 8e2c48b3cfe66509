// Routes that tell about the server. All read published snapshots and counters: none waits for a
// step, none touches the engine.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "metrics/exposition.h"

#include <cstdint>
#include <memory>
#include <mutex>

namespace fermata::api {

// Averages of /metrics' gauges run from one scrape to the next. Thread-safe.
class ScrapeWindow {
 public:
  struct Rates {
    double prompt_per_second = 0.0;
    double predicted_per_second = 0.0;
  };
  // What happened since the last call, 0 where nothing did.
  Rates next(const scheduler::SchedulerStats& stats);

 private:
  std::mutex mutex_;
  std::uint64_t prompt_tokens_ = 0, prompt_us_ = 0, predicted_tokens_ = 0, predicted_us_ = 0;
};

std::unique_ptr<Exchange> health();
std::unique_ptr<Exchange> models(const Context& context);
std::unique_ptr<Exchange> props(const Context& context);
std::unique_ptr<Exchange> slots(const Context& context, bool fail_on_no_slot);
std::unique_ptr<Exchange> metrics(const Context& context, ScrapeWindow& window);

}  // namespace fermata::api
