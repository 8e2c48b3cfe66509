// What a tick fills and the next one uses again, so that the step path does not allocate.
#pragma once

#include "core/pages.h"
#include "core/request.h"
#include "core/slots.h"
#include "engine/engine.h"
#include "kv/archive.h"
#include "kv/page_desk.h"
#include "policy/view.h"
#include "scheduler/sequence.h"

#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace fermata::scheduler {

// What a policy::View refers to.
struct Views {
  std::vector<policy::SeatView> seats;
  std::vector<policy::WaitingView> waiting;
  std::vector<policy::RunningView> running;
  std::vector<policy::ParkedView> parked;
  std::vector<policy::PrefixView> prefixes;
  std::vector<const Sequence*> starters;  // Who computes a prompt, or is about to.
};

// Of one step.
struct Rows {
  std::vector<engine::RowGroup> groups;
  std::vector<engine::GroupResult> results;
};

using Question = std::variant<PageCommand, kv::PageImport, SlotCommand>;

// What came since the last tick.
struct FromOutside {
  std::vector<std::vector<Submission>> submissions;
  std::vector<Question> questions;
  std::vector<kv::Arrival> arrivals;      // From the store, as the next.
  std::vector<store::Completion> others;  // Not the archive's.
};

// The one that it insists on. Whose seat a change of the geometry took away goes on in any.
inline std::optional<Seat> seat_wanted(const Request& request, std::int32_t seats) {
  return request.seat && request.seat->value < seats ? request.seat : std::nullopt;
}

// Of those who run, who computes a prompt that others may begin like.
void find_starters(std::span<const std::unique_ptr<Sequence>> running,
                   std::vector<const Sequence*>& starters);
// Whether its next row is one that nothing else is computed with: of a reply, or with
// `same_shapes` of one that is computed again.
bool goes_row_by_row(const Sequence& sequence, bool same_shapes);
// Cells that it holds at its end at most; 0 where tokens take none.
Tokens cells_needed(const Request& request, const engine::Engine& engine);
// What has to be promised to it before it may start.
Tokens worst_case(const Request& request, const engine::Engine& engine);

}  // namespace fermata::scheduler
