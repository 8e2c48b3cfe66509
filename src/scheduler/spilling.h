// Parked sequences whose bytes are out of RAM: hands them to what is slower, and takes them back.
#pragma once

#include "kv/pool.h"
#include "kv/spill.h"
#include "policy/policy.h"
#include "scheduler/sequence.h"
#include "scheduler/status.h"

#include <memory>
#include <string_view>
#include <vector>

namespace fermata::scheduler {

// The scheduler thread's own.
class Spilling {
 public:
  using Parked = std::vector<std::unique_ptr<Sequence>>;

  // `spill` may be none: then everything is in RAM.
  Spilling(kv::Pool& pool, SchedulerStats& stats, std::unique_ptr<kv::Spill> spill)
      : pool_(pool), stats_(stats), spill_(std::move(spill)) {}

  // Whether an image that is not wholly within the budget of RAM is on its way out; also where
  // there is nothing to do.
  bool put(const Request& request, const kv::Image& image, double price_seconds);
  void fetch(const policy::Plan& plan, const Parked& parked);
  // It runs again.
  void forget(RequestId id) {
    if (spill_) spill_->forget(id);
  }
  void end(RequestId id, bool is_stopping) {
    if (spill_) spill_->end(id, is_stopping);
  }
  bool take(store::Completion& completion) { return spill_ && spill_->take(completion); }
  // What has come since.
  void take(const Parked& parked);
  void change_fingerprint(const store::Fingerprint& now, store::Kind kind) {
    if (spill_) spill_->change_fingerprint(now, kind);
  }

 private:
  void take(kv::Spilled& spilled, Sequence& sequence, const Parked& parked);
  void take_back(kv::Spilled& spilled, Sequence& sequence, const Parked& parked);
  void lose(Sequence& sequence, std::string_view why);

  kv::Pool& pool_;
  SchedulerStats& stats_;
  std::unique_ptr<kv::Spill> spill_;
  std::vector<kv::Spilled> news_;  // Reused.
};

}  // namespace fermata::scheduler
