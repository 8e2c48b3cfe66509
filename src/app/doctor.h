// `fermata doctor`: what this machine has for serving, and the mend for what it lacks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::app {

// Prints one line a finding: "ok", "note" or "problem", and the mend of each problem.
// 0 when there is no problem, else 1.
int run_doctor(std::span<const std::string_view> args);

}  // namespace fermata::app
