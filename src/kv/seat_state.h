// What the pool knows of one seat.
#pragma once

#include "base/clock.h"
#include "core/request.h"
#include "kv/image.h"
#include "kv/pool_types.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fermata::kv {

struct SeatState {
  SeatUse use = SeatUse::empty;
  std::vector<TokenId> tokens;
  Micros last_used;
  Tokens promised;                // 0: no reservation.
  Tokens in_chunks;               // Leading tokens that were computed as whole chunks.
  Tokens unshifted = everything;  // Leading tokens that stand where they were computed.
  Owner owner{};
  std::string conversation;   // As Request::conversation.
  std::vector<Piece> mirror;  // Bytes of its cells, from the first on.
  bool is_kept = true;        // Idle: it may go to the shelf; no copy of it has failed.
  std::uint64_t version = 0;
  Tokens rows_before;  // Of Pool::rows_, when it was released.
};

}  // namespace fermata::kv
