// Which rows the next step computes.
#pragma once

#include "policy/policy.h"

namespace fermata::policy {

// Every running sequence that decodes, then prompts in order, as many rows as the batch, the step's
// time budget and `room`, the cells that are free, allow. Those in plan.park and plan.fail are left
// out. REQUIRES: plan.run is empty.
void plan_rows(const View& view, Tokens room, Plan& plan);

}  // namespace fermata::policy
