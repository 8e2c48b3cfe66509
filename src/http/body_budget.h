// The memory that request bodies of all connections may take together.
#pragma once

#include "metrics/counters.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace fermata::http {

// One request's share of the budget; given back when it goes. A small body is free of charge, so
// that clients with large ones in the making do not lock out the others.
class BodyCharge {
 public:
  static constexpr std::int64_t free_bytes = 64 * 1024;

  // `used` outlives the charge and is the sum of all charges.
  BodyCharge(Gauge& used, std::int64_t limit) : used_(&used), limit_(limit) {}
  BodyCharge(BodyCharge&& from) noexcept
      : used_(from.used_), limit_(from.limit_), charged_(std::exchange(from.charged_, 0)) {}
  BodyCharge& operator=(BodyCharge&&) = delete;
  ~BodyCharge() { used_->add(-charged_); }

  // Makes the share large enough for a body of `bytes`. False: the budget is used up; the share
  // is as before.
  [[nodiscard]] bool cover(std::size_t bytes) {
    const auto wanted = static_cast<std::int64_t>(bytes);
    if (wanted <= free_bytes || wanted <= charged_) return true;
    const std::int64_t more = wanted - charged_;
    if (used_->add(more) > limit_) {
      used_->add(-more);
      return false;
    }
    charged_ = wanted;
    return true;
  }

 private:
  Gauge* used_;
  std::int64_t limit_;
  std::int64_t charged_ = 0;
};

}  // namespace fermata::http
