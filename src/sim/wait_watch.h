// Watches from outside who is parked and for how long: that nobody passes the head of the line, and
// that nobody who reads waits longer than the bound.
#pragma once

#include "scheduler/status.h"
#include "sim/odds.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fermata::sim {

class WaitWatch {
 public:
  explicit WaitWatch(const WaitBound& bound) : bound_(bound) {}

  struct Parked {
    RequestId id;
    std::int32_t priority = 0;
    bool reads = true;   // Its client has room for events, and did not leave.
    bool bound = false;  // To one seat, and waits for whoever has that; or held by an operator.
  };
  // One tick: who was parked before it, in order; the highest priority of those that ran or waited
  // then (none: the least there is); who is parked after it; and how long it took.
  void tick(const std::vector<Parked>& before, std::int32_t others_priority,
            const std::vector<RequestId>& after, Micros took);

  // The geometry is another one: who waits is counted anew.
  void restart(const WaitBound& bound) {
    bound_ = bound;
    waits_.clear();
  }

  const std::vector<std::string>& faults() const { return faults_; }
  // The longest wait seen, over its bound.
  double wait_of_bound() const { return wait_of_bound_; }

 private:
  struct Wait {
    Micros time;
    std::int64_t resumed_before = 0;
    bool told = false;  // That it is too long.
  };
  void check(RequestId id, Wait& wait);

  WaitBound bound_;
  std::map<std::uint64_t, Wait> waits_;
  std::vector<std::string> faults_;
  double wait_of_bound_ = 0.0;
};

}  // namespace fermata::sim
