// Figures: medians, the machine they come from, and the one JSON line.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fermata::bench {

using Json = nlohmann::ordered_json;

// REQUIRES: not empty.
double median(std::vector<double> values);
// The value that `percent` of all values do not exceed. REQUIRES: not empty.
double percentile(std::vector<double> values, double percent);

// Processor, cores, memory, version of the library.
Json machine();

// One line of progress on standard error.
void progress(const std::string& line);

}  // namespace fermata::bench
