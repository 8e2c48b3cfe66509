#include "app/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

namespace fermata::app {
namespace {

constexpr off_t text_bytes_max = 1024 * 1024;
constexpr std::string_view blanks = " \t\r\v\f";

}  // namespace

Result<std::string, std::string> read_text(std::string_view flag, const std::string& path) {
  const auto fail = [&](std::string_view why) {
    return Err{fmt::format("{}: cannot read '{}': {}", flag, path, why)};
  };
  struct stat found {};
  if (stat(path.c_str(), &found) != 0)
    return fail(fmt::format("{}; name a file", std::strerror(errno)));
  if (S_ISDIR(found.st_mode)) return fail("it is a folder; name a file");
  if (found.st_size > text_bytes_max) {
    return fail(fmt::format("it has more than {} bytes; is it the right file?", text_bytes_max));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file) return fail(fmt::format("{}; let this user read it", std::strerror(errno)));
  text << file.rdbuf();
  if (text.str().empty()) return fail("it is empty; put something into it, or leave the flag out");
  return text.str();
}

Result<std::vector<std::string>, std::string> read_keys(const std::string& path) {
  const auto text = read_text("--api-key-file", path);
  if (!text) return Err{text.error()};
  std::vector<std::string> keys;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(blanks);
    if (first == std::string::npos) continue;
    keys.push_back(line.substr(first, line.find_last_not_of(blanks) - first + 1));
  }
  if (keys.empty()) {
    return Err{fmt::format("--api-key-file: no key in '{}'; write one on each line", path)};
  }
  return keys;
}

}  // namespace fermata::app
