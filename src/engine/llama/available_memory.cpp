#include "engine/llama/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace fermata::engine::llama {
namespace {

// The number after `name` in a file of "name value" lines.
std::optional<std::int64_t> field(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key;
    std::int64_t value = 0;
    if (words >> key >> value && key == name) return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> number(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // Absent, or "max".
}

// Version 2 of control groups, as a container sees its own.
std::optional<std::int64_t> left_in_control_group() {
  const std::string root = "/sys/fs/cgroup/";
  const auto most = number(root + "memory.max");
  const auto now = number(root + "memory.current");
  if (!most || !now) return std::nullopt;
  const std::int64_t droppable = field(root + "memory.stat", "inactive_file").value_or(0);
  return std::max<std::int64_t>(0, *most - *now + droppable);
}

}  // namespace

std::optional<Bytes> available_memory() {
  const auto kilobytes = field("/proc/meminfo", "MemAvailable:");
  const auto group = left_in_control_group();
  if (!kilobytes && !group) return std::nullopt;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  if (kilobytes) least = std::min(least, *kilobytes * 1024);
  if (group) least = std::min(least, *group);
  return Bytes(least);
}

}  // namespace fermata::engine::llama
