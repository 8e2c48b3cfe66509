// A broken invariant of our own ends the process, in every build type. Expected trouble (client,
// disk, peer, full memory) is a Result or a closed list of outcomes instead, never a check.
#pragma once

namespace fermata {

// Prints "file:line: check failed: condition (why)" to standard error and aborts.
[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);

}  // namespace fermata

// REQUIRES style: `why` says which promise was broken, as a plain string literal.
#define FERMATA_CHECK(condition, why)                               \
  do {                                                              \
    if (!(condition)) [[unlikely]] {                                \
      ::fermata::check_failed(#condition, why, __FILE__, __LINE__); \
    }                                                               \
  } while (false)
