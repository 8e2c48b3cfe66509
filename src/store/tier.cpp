#include "store/tier.h"

#include "base/check.h"

namespace fermata::store {
namespace {

std::int64_t size_of(std::span<const std::byte> bytes) {
  return static_cast<std::int64_t>(bytes.size());
}

}  // namespace

Outcome Tier::put(const BlockRef& block, const Fingerprint& fingerprint,
                  std::span<const std::byte> bytes) {
  FERMATA_CHECK(size_of(bytes) == block.bytes.value && !bytes.empty(), "a block of its size");
  const Micros began = clock_.now();
  const Outcome outcome = do_put(block, fingerprint, bytes);
  stats_.puts[outcome].add();
  if (outcome == Outcome::done) stats_.bytes_written.add(bytes.size());
  stats_.put_time.observe(clock_.now() - began);
  return outcome;
}

Outcome Tier::get(const BlockRef& block, const Fingerprint& fingerprint, ByteBuffer& into) {
  const Micros began = clock_.now();
  Outcome outcome = Outcome::failed;  // There is no memory for it.
  if (resize(into, static_cast<std::size_t>(block.bytes.value))) {
    Intake intake(fingerprint, into);
    outcome = do_get(block, fingerprint, intake);
    if (outcome == Outcome::done && intake.id() != block.id) outcome = Outcome::damaged;
  }
  if (outcome == Outcome::damaged || outcome == Outcome::foreign) do_condemn(block, outcome);
  stats_.gets[outcome].add();
  if (outcome == Outcome::done) stats_.bytes_read.add(into.size());
  stats_.get_time.observe(clock_.now() - began);
  return outcome;
}

Outcome Tier::erase(const BlockRef& block) {
  const Outcome outcome = do_erase(block);
  if (outcome == Outcome::done) stats_.erased.add();
  return outcome;
}

}  // namespace fermata::store
