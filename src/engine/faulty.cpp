#include "engine/faulty.h"

namespace fermata::engine {

StepOutcome FaultyEngine::step(std::span<const RowGroup> groups, std::span<GroupResult> results) {
  if (!random_.chance(faults_.no_room_percent)) return inner_->step(groups, results);
  for (GroupResult& result : results) result = {};
  return StepOutcome::no_room;
}

Result<void, MoveFault> FaultyEngine::export_range(Seat seat, Tokens begin, Tokens end,
                                                   ByteBuffer& into) {
  if (random_.chance(faults_.move_percent)) return Err{MoveFault::no_room};
  return inner_->export_range(seat, begin, end, into);
}

Result<void, MoveFault> FaultyEngine::import_range(Seat seat, std::span<const std::byte> bytes) {
  if (random_.chance(faults_.move_percent)) return Err{MoveFault::no_room};
  return inner_->import_range(seat, bytes);
}

Result<void, MoveFault> FaultyEngine::export_sequence(Seat seat, ByteBuffer& into) {
  if (random_.chance(faults_.move_percent)) return Err{MoveFault::no_room};
  return inner_->export_sequence(seat, into);
}

Result<void, MoveFault> FaultyEngine::import_sequence(Seat seat, std::span<const std::byte> bytes) {
  if (random_.chance(faults_.move_percent)) return Err{MoveFault::no_room};
  return inner_->import_sequence(seat, bytes);
}

Result<void, MoveFault> FaultyEngine::export_state(Seat seat, ByteBuffer& into) {
  if (random_.chance(faults_.move_percent)) return Err{MoveFault::no_room};
  return inner_->export_state(seat, into);
}

Result<void, MoveFault> FaultyEngine::import_state(Seat seat, Tokens tokens,
                                                   std::span<const std::byte> state) {
  if (random_.chance(faults_.move_percent)) return Err{MoveFault::no_room};
  return inner_->import_state(seat, tokens, state);
}

}  // namespace fermata::engine
