// `fermata sim`: plays random schedules on the fake engine and checks them, or compares policies.
#pragma once

#include <span>
#include <string_view>

namespace fermata::app {

// 0: everything held, 1: something did not, and each seed has its line to play it again, 2: usage.
int run_sim(std::span<const std::string_view> args);

}  // namespace fermata::app
