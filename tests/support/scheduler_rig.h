// The simulator's rig under the names that tests use.
#pragma once

#include "sim/rig.h"

namespace fermata::testing {

using sim::Ask;
using sim::Client;
using sim::make_deterministic;
using sim::RigSpec;
using sim::solo_run;
using SchedulerRig = sim::Rig;

}  // namespace fermata::testing
