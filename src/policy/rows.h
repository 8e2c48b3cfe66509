// Which rows the next step computes.
#pragma once

#include "policy/policy.h"

namespace fermata::policy {

// Every running sequence that decodes, then prompts in order, as many rows as the batch, the step's
// time budget and `room`, the cells that are free, allow. With View::chunk the first prompt gets
// its whole next piece whatever the budget is, others theirs as far as it goes, and a reply that is
// computed again its next row. Those in plan.park and plan.fail are left out.
// REQUIRES: plan.run is empty; with View::chunk, a piece and a row of every seat fit in the batch.
void plan_rows(const View& view, Tokens room, Plan& plan);

}  // namespace fermata::policy
