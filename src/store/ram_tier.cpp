#include "store/ram_tier.h"

#include <cstring>

namespace fermata::store {

Outcome RamTier::do_put(const BlockRef& block, const Fingerprint&,
                        std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (blocks_.contains(block.id)) return Outcome::done;
  if (budget_ && used_ + block.bytes > *budget_) return Outcome::full;
  ByteBuffer copy;
  if (!resize(copy, bytes.size())) return Outcome::full;
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  blocks_.emplace(block.id, std::move(copy));
  used_ += block.bytes;
  stats_.bytes.set(used_.value);
  stats_.blocks.add(1);
  return Outcome::done;
}

Outcome RamTier::do_get(const BlockRef& block, const Fingerprint&, std::span<std::byte> into) {
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(block.id);
  if (at == blocks_.end()) return Outcome::missing;
  if (at->second.size() != into.size()) return Outcome::damaged;
  std::memcpy(into.data(), at->second.data(), into.size());
  return Outcome::done;
}

Outcome RamTier::do_erase(const BlockRef& block) {
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(block.id);
  if (at == blocks_.end()) return Outcome::missing;
  used_ -= Bytes(static_cast<std::int64_t>(at->second.size()));
  blocks_.erase(at);
  stats_.bytes.set(used_.value);
  stats_.blocks.add(-1);
  return Outcome::done;
}

}  // namespace fermata::store
