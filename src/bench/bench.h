// `fermata bench WORKLOAD`: measures this build on this machine. Progress goes to standard error;
// the last line of standard output is one JSON object with the ratio, the paired medians and the
// machine.
#pragma once

#include <span>
#include <string_view>

namespace fermata::bench {

// 0: measured (whatever the figures), 1: could not be measured, 2: usage.
int run_bench(std::span<const std::string_view> args);

}  // namespace fermata::bench
