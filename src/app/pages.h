// `fermata pages ls|verify|show|gc DIR`: looks after a folder of pages that no server has open.
#pragma once

#include <span>
#include <string_view>

namespace fermata::app {

// 0: done and nothing wrong, 1: it cannot be opened or something is wrong, 2: usage.
int run_pages(std::span<const std::string_view> args);

}  // namespace fermata::app
