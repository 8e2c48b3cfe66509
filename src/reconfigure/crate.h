// Cells of seats in RAM while no engine is there: out of the old one, into the next.
#pragma once

#include "base/clock.h"
#include "engine/engine.h"
#include "kv/pool.h"
#include "reconfigure/transfer.h"

#include <vector>

namespace fermata::reconfigure {

// The scheduler thread's own.
class Crate {
 public:
  // Copies what these seats hold. Bytes that seats share are copied once.
  Crate(engine::Engine& from, const kv::Pool& pool, const std::vector<Transfer::Item>& items,
        Tokens block);
  // Those that are in the empty seats `to` of another engine now; may be called again with another
  // engine. Those that could not be copied are left out.
  std::vector<kv::Adopted> unpack(engine::Engine& into, const std::vector<Transfer::Item>& items);

  Bytes bytes() const { return bytes_; }

 private:
  struct Packed {
    Seat seat;
    Tokens length{0};
    std::vector<ByteBuffer> pieces;  // From `shared` on; or one of all.
    std::optional<std::size_t> like = {};
    Tokens shared{0};
    bool failed = false;
  };

  void pack(engine::Engine& from, const kv::Pool& pool, Packed& packed, Tokens block);
  void add(Packed& packed, ByteBuffer bytes);
  bool put(engine::Engine& into, Seat to, const Packed& packed) const;

  bool ranges_;
  std::vector<Packed> packed_;
  Bytes bytes_{0};
};

}  // namespace fermata::reconfigure
