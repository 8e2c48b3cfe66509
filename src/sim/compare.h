// The policies side by side on the same workloads.
#pragma once

#include <string>

namespace fermata::sim {

// Markdown: a row for each workload, over-commitment and policy, and at the end
// each policy over the default one. The same on every machine.
// A row is the mean of so many `days`; `ram_percent`: see Tightness. REQUIRES: both counts >= 1.
std::string compare(int threads, int days, int ram_percent);

}  // namespace fermata::sim
