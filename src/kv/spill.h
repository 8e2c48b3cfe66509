// The rung below RAM: where bytes of parked sequences go for which its budget has no room.
#pragma once

#include "base/byte_buffer.h"
#include "core/request.h"
#include "kv/image.h"
#include "store/store.h"

#include <cstdint>
#include <vector>

namespace fermata::kv {

// What became of the bytes of one sequence.
struct Spilled {
  enum class What : std::uint8_t {
    out,   // They are there; the share of the image is given back.
    back,  // In `pieces`, exactly.
    lost,  // They are not there, or not any more.
  };
  RequestId id;
  What what = What::lost;
  std::vector<ByteBuffer> pieces = {};
};

// The scheduler thread's own, lives shorter than the pool. Nothing waits for what is slow: it comes
// by reap().
class Spill {
 public:
  virtual ~Spill() = default;
  // Takes a share of an image that begins at position 0 and whose pieces end at whole blocks, but
  // for the last. `out` or `lost` comes, unless it is forgotten before. False: no more now.
  // REQUIRES: no other image of that id is kept.
  virtual bool put(RequestId id, const Image& image, const Owner& owner, double price_seconds) = 0;
  // `back` or `lost` comes, unless it is forgotten before; after `back` the bytes are still there.
  // No effect while it is on its way. False: too much is. REQUIRES: it is out.
  virtual bool fetch(RequestId id) = 0;
  // Nobody asks for it any more. No effect where it is not kept.
  virtual void forget(RequestId id) = 0;
  // And the request has ended: nothing of it stays, but with `is_stopping`, when it may go on after
  // a restart.
  virtual void end(RequestId id, bool /*is_stopping*/) { forget(id); }
  // Adds what has come since.
  virtual void reap(std::vector<Spilled>& out) = 0;

  // Of the store that this one uses; see Archive::change_fingerprint.
  virtual bool take(store::Completion& /*completion*/) { return false; }
  virtual void change_fingerprint(const store::Fingerprint& /*now*/, store::Kind /*kind*/) {}
};

}  // namespace fermata::kv
