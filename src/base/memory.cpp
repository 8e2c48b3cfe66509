#include "base/memory.h"

#include <cstdio>

#include <malloc.h>
#include <unistd.h>

namespace fermata {

Bytes resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return Bytes(0);
  long long all = 0, resident = 0;
  const int read = std::fscanf(file, "%lld %lld", &all, &resident);
  std::fclose(file);
  return Bytes(read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0);
}

void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace fermata
