// What the process holds of the machine's memory.
#pragma once

#include "base/types.h"

namespace fermata {

// As the kernel counts it, mapped files included; 0 where it cannot be known. Any thread.
Bytes resident_bytes();
// Gives back what the heap holds and nobody uses. Takes a while.
void trim_heap();

}  // namespace fermata
