// Which idle conversations are copied while they are still in the pool.
#pragma once

#include "policy/policy.h"

namespace fermata::policy {

// The idle seat that would be dropped first is copied first, so that dropping it will be short. Not
// in a tick that moves sequences, nor a seat that the plan touches.
void plan_copies(const View& view, Plan& plan);

}  // namespace fermata::policy
