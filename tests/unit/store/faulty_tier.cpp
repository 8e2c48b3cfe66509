#include "unit/store/faulty_tier.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fermata::store {

FaultyTier::FaultyTier(const Clock& clock, std::unique_ptr<Tier> inner, std::uint64_t seed,
                       FaultOdds odds, std::function<void()> delay)
    : Tier(clock), inner_(std::move(inner)), odds_(odds), delay_(std::move(delay)), random_(seed) {}

bool FaultyTier::happens(int percent) {
  const std::lock_guard lock(mutex_);
  return percent > 0 && random_.chance(percent);
}

std::size_t FaultyTier::below(std::size_t limit) {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(limit) - 1));
}

Outcome FaultyTier::do_put(const BlockRef& block, const Fingerprint& fingerprint,
                           std::span<const std::byte> bytes) {
  if (happens(odds_.delayed) && delay_) delay_();
  if (happens(odds_.full)) return Outcome::full;
  if (happens(odds_.refused)) return Outcome::failed;
  if (happens(odds_.dropped)) return Outcome::done;
  return inner_->put(block, fingerprint, bytes);
}

Outcome FaultyTier::do_get(const BlockRef& block, const Fingerprint& fingerprint, Intake& intake) {
  const std::span<std::byte> into = intake.bytes();
  if (happens(odds_.delayed) && delay_) delay_();
  if (happens(odds_.refused)) return Outcome::failed;
  ByteBuffer bytes;
  const Outcome outcome = inner_->get(block, fingerprint, bytes);
  if (outcome != Outcome::done) return outcome;
  std::memcpy(into.data(), bytes.data(), into.size());
  if (happens(odds_.flipped)) into[below(into.size())] ^= std::byte{1};
  if (happens(odds_.cut)) {
    const std::size_t kept = below(into.size());
    std::fill(into.begin() + static_cast<std::ptrdiff_t>(kept), into.end(), std::byte{0});
  }
  return outcome;
}

}  // namespace fermata::store
