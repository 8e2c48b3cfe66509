// Blocks in memory, within a budget. Makes no room by itself: who puts decides what goes.
#pragma once

#include "store/tier.h"

#include <mutex>
#include <optional>
#include <unordered_map>

namespace fermata::store {

class RamTier final : public Tier {
 public:
  // No budget: no limit.
  RamTier(const Clock& clock, std::optional<Bytes> budget) : Tier(clock), budget_(budget) {}

 protected:
  Outcome do_put(const BlockRef& block, const Fingerprint& fingerprint,
                 std::span<const std::byte> bytes) override;
  Outcome do_get(const BlockRef& block, const Fingerprint& fingerprint,
                 std::span<std::byte> into) override;
  Outcome do_erase(const BlockRef& block) override;
  void do_condemn(const BlockRef& block, Outcome) override { do_erase(block); }

 private:
  const std::optional<Bytes> budget_;
  std::mutex mutex_;
  std::unordered_map<ContentId, ByteBuffer> blocks_;
  Bytes used_;
};

}  // namespace fermata::store
