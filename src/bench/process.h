// What the system knows of a process: memory, threads and their processor time.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <map>
#include <string>

#include <sys/types.h>

namespace fermata::bench {

struct ProcessFigures {
  std::int64_t resident_bytes = 0;
  std::map<pid_t, std::int64_t> cpu_ns;  // Of each thread.

  std::int64_t all_cpu_ns() const;
};

// Error: one line, as there is where no such process runs.
Result<ProcessFigures, std::string> look_at(pid_t pid);

// Processor time between two looks of all threads but the one that used most: of what surrounds a
// model that one thread computes.
std::int64_t cpu_ns_beside_busiest(const ProcessFigures& before, const ProcessFigures& after);

// Lets this process and those that it starts open as many files as the system allows.
void allow_many_files();

}  // namespace fermata::bench
