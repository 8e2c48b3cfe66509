// A tier that fails as media do, from a seed: drops, delays, corrupts, cuts short, fills up. Around
// any other tier.
#pragma once

#include "base/random.h"
#include "store/tier.h"

#include <functional>
#include <memory>
#include <mutex>

namespace fermata::store {

// In percent of the operations.
struct FaultOdds {
  int full = 0;     // A put finds no room.
  int refused = 0;  // A put or a get fails.
  int dropped = 0;  // A put is done and nothing is stored.
  int flipped = 0;  // A get gives one wrong bit.
  int cut = 0;      // A get gives only the beginning; the rest is zero.
  int delayed = 0;  // `delay` is called before a put or a get.
};

class FaultyTier final : public Tier {
 public:
  FaultyTier(const Clock& clock, std::unique_ptr<Tier> inner, std::uint64_t seed, FaultOdds odds,
             std::function<void()> delay = {});

 protected:
  Outcome do_put(const BlockRef& block, const Fingerprint& fingerprint,
                 std::span<const std::byte> bytes) override;
  Outcome do_get(const BlockRef& block, const Fingerprint& fingerprint, Intake& into) override;
  Outcome do_erase(const BlockRef& block) override { return inner_->erase(block); }
  void do_condemn(const BlockRef& block, Outcome) override { inner_->erase(block); }
  Outcome do_settle() override { return inner_->settle(); }

 private:
  bool happens(int percent);
  std::size_t below(std::size_t limit);

  const std::unique_ptr<Tier> inner_;
  const FaultOdds odds_;
  const std::function<void()> delay_;
  std::mutex mutex_;
  Random random_;
};

}  // namespace fermata::store
