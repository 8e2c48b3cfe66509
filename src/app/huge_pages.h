// Large allocations on huge pages. Weights and cells that lie in small pages are read at a half to
// nine tenths of the speed, another one in each process (docs/benchmarks.md).
#pragma once

#include <optional>

namespace fermata::app {

// glibc's malloc takes that order only from its environment, at the start of a process: so this
// replaces the process by itself with the same arguments, once. Returns where that would not help:
// done already, the kernel gives huge pages to everybody or to nobody, GLIBC_TUNABLES says
// something about them, another C library; and where it fails. REQUIRES: nothing but the command
// line has been read; no other thread runs.
void restart_on_huge_pages();

struct PageSpeeds {
  double huge_gb_per_s;
  double small_gb_per_s;
};

// Reads 256 MiB in scattered lines, on each kind of pages. Nothing: no memory for it.
std::optional<PageSpeeds> measure_page_speeds();

}  // namespace fermata::app
