#include "app/huge_pages.h"

#include "base/clock.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace fermata::app {
namespace {

constexpr const char* variable = "GLIBC_TUNABLES";
constexpr std::string_view tunable = "glibc.malloc.hugetlb";

std::string file_text(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The arguments end with NUL each.
std::vector<char*> split(std::string& command_line) {
  std::vector<char*> out;
  for (std::size_t at = 0; at < command_line.size(); at += std::strlen(&command_line[at]) + 1) {
    out.push_back(&command_line[at]);
  }
  out.push_back(nullptr);
  return out;
}

bool would_help(std::string_view tunables) {
#ifdef __GLIBC__
  if (tunables.find(tunable) != std::string_view::npos) return false;
  return file_text("/sys/kernel/mm/transparent_hugepage/enabled").find("[madvise]") !=
         std::string::npos;
#else
  return false;
#endif
}

// GB/s of reading lines of memory in an order that no prefetcher guesses, where it lies on such
// pages: the best of some rounds; 0 without memory.
double read_speed(int advice) {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  constexpr std::size_t line = 64 / sizeof(std::uint64_t);
  constexpr std::size_t lines = bytes / 64;
  constexpr std::size_t stride = 2'654'435'761;  // Odd: each line is met once.
  constexpr int rounds = 3;
  void* const place =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return 0;
  madvise(place, bytes, advice);
  std::memset(place, 1, bytes);
  const auto* const words = static_cast<const std::uint64_t*>(place);
  const SteadyClock clock;
  double best = 0;
  volatile std::uint64_t sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const Micros begun = clock.now();
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < lines; ++i) found += words[(i * stride % lines) * line];
    sum = sum + found;
    const Micros took = std::max(clock.now() - begun, Micros(1));
    best = std::max(best, static_cast<double>(bytes) / 1000.0 / static_cast<double>(took.value));
  }
  munmap(place, bytes);
  return best;
}

}  // namespace

void restart_on_huge_pages() {
  const char* const found = std::getenv(variable);
  std::string tunables = found == nullptr ? "" : found;
  if (!would_help(tunables)) return;
  std::array<char, 4096> program{};
  const ssize_t length = readlink("/proc/self/exe", program.data(), program.size() - 1);
  std::string command_line = file_text("/proc/self/cmdline");
  if (length <= 0 || command_line.empty()) return;
  // In front: glibc cuts its own copy of the text, and the next start has to see that this is done.
  const std::string rest = tunables.empty() ? "" : ":" + tunables;
  tunables = std::string(tunable) + "=1" + rest;
  setenv(variable, tunables.c_str(), 1);
  execv(program.data(), split(command_line).data());
}

std::optional<PageSpeeds> measure_page_speeds() {
  const PageSpeeds out{.huge_gb_per_s = read_speed(MADV_HUGEPAGE),
                       .small_gb_per_s = read_speed(MADV_NOHUGEPAGE)};
  if (out.huge_gb_per_s == 0 || out.small_gb_per_s == 0) return std::nullopt;
  return out;
}

}  // namespace fermata::app
