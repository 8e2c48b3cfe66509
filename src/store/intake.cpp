#include "store/intake.h"

#include "base/check.h"

#ifdef __x86_64__
// The widest vectors that the processor has, chosen when it runs; there is none for others.
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace fermata::store {
namespace {

std::uint64_t seed_of(const Fingerprint& fingerprint) {
  std::uint64_t seed = 0;
  std::memcpy(&seed, fingerprint.data(), sizeof seed);
  return seed;
}

ContentId id_of(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  ContentId id;
  static_assert(sizeof canonical == ContentId::size);
  std::memcpy(id.bytes.data(), &canonical, sizeof canonical);
  return id;
}

}  // namespace

ContentId content_id(const Fingerprint& fingerprint, std::span<const std::byte> bytes) {
  return id_of(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed_of(fingerprint)));
}

void Intake::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Intake::Intake(const Fingerprint& fingerprint, std::span<std::byte> bytes)
    : bytes_(bytes), state_(XXH3_createState()) {
  FERMATA_CHECK(state_ != nullptr, "memory for the state of a hash");
  XXH3_128bits_reset_withSeed(state_.get(), seed_of(fingerprint));
}

void Intake::came(std::size_t count) {
  FERMATA_CHECK(count >= hashed_ && count <= bytes_.size(), "bytes of the block, in their order");
  XXH3_128bits_update(state_.get(), bytes_.data() + hashed_, count - hashed_);
  hashed_ = count;
}

ContentId Intake::id() {
  came(bytes_.size());
  return id_of(XXH3_128bits_digest(state_.get()));
}

}  // namespace fermata::store
