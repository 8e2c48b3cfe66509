// Which idle conversations are copied while they are still in the pool, and which of those leave
// it.
#pragma once

#include "policy/policy.h"

namespace fermata::policy {

// The idle seat that would be dropped first is copied first, so that dropping it will be short. Not
// in a tick that moves sequences, nor a seat that the plan touches.
void plan_copies(const View& view, Plan& plan);

// In the pooled layout every row looks at all cells, whoever they belong to: an idle conversation
// slows all others down. One that is copied, but for a few blocks, leaves before others have
// computed so many rows that bringing it back costs less; one a tick, the one unused for longest
// first, and only beside rows of prompts: those of streams skip cells that are not theirs. Measured
// in docs/design/idle-cells.md.
void plan_clearing(const View& view, Plan& plan);

}  // namespace fermata::policy
