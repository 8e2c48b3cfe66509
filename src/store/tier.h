// A place where the bytes of blocks rest, by content id. Public methods check, count, time and
// verify; the protected ones of an implementation move bytes and nothing else.
#pragma once

#include "base/byte_buffer.h"
#include "base/clock.h"
#include "base/types.h"
#include "store/intake.h"
#include "store/outcome.h"
#include "store/page.h"
#include "store/stats.h"

#include <span>

namespace fermata::store {

// One block, as who refers to it knows it.
struct BlockRef {
  ContentId id;
  Tokens tokens;
  Bytes bytes;
  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

// Thread-safe; blocks the caller for as long as the medium takes. The clock outlives it.
class Tier {
 public:
  explicit Tier(const Clock& clock) : clock_(clock) {}
  virtual ~Tier() = default;
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;

  // done: get() gives these bytes. full, failed: nothing is stored.
  // REQUIRES: block.id == content_id(fingerprint, bytes), block.bytes == their number > 0.
  [[nodiscard]] Outcome put(const BlockRef& block, const Fingerprint& fingerprint,
                            std::span<const std::byte> bytes);

  // done: `into` holds exactly the bytes that were put, checked against the content id. missing,
  // damaged, foreign, failed: `into` holds nothing of meaning. What is damaged or foreign is out of
  // the way afterwards.
  [[nodiscard]] Outcome get(const BlockRef& block, const Fingerprint& fingerprint,
                            ByteBuffer& into);

  // What was put outlives a power cut, where the tier can. done, full, failed.
  [[nodiscard]] Outcome settle() { return do_settle(); }
  // done, missing, failed.
  Outcome erase(const BlockRef& block);

  const TierStats& stats() const { return stats_; }
  // For a tier that others count.
  void tell_held(Bytes bytes, std::size_t blocks) {
    stats_.bytes.set(bytes.value);
    stats_.blocks.set(static_cast<std::int64_t>(blocks));
  }

 protected:
  virtual Outcome do_put(const BlockRef& block, const Fingerprint& fingerprint,
                         std::span<const std::byte> bytes) = 0;
  // `into` has block.bytes bytes. Whoever gets them in pieces tells it of each.
  virtual Outcome do_get(const BlockRef& block, const Fingerprint& fingerprint, Intake& into) = 0;
  virtual Outcome do_erase(const BlockRef& block) = 0;
  // Puts what is damaged or foreign out of the way.
  virtual void do_condemn(const BlockRef& block, Outcome why) = 0;
  virtual Outcome do_settle() { return Outcome::done; }

  TierStats stats_;

 private:
  const Clock& clock_;
};

}  // namespace fermata::store
