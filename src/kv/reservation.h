// A promise of cells.
#pragma once

#include "base/types.h"

namespace fermata::kv {

class Pool;

// Cells promised to one busy seat: it may grow to `total` without asking again. Move-only; the
// promise ends with the object.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

 private:
  friend class Pool;
  Reservation(Pool& pool, Seat seat) : pool_(&pool), seat_(seat) {}
  Pool* pool_ = nullptr;
  Seat seat_;
};

}  // namespace fermata::kv
