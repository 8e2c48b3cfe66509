// Which tokens a sequence loses when its window is full and it is to go on all the same.
#pragma once

#include "base/types.h"
#include "core/request.h"

namespace fermata {

struct ContextShift {
  Tokens keep;     // Leading tokens that stay.
  Tokens discard;  // Those after them that go; the rest moves down.
};

// As llama-server: n_keep tokens, one more where the vocabulary puts a first one before every
// prompt, but four less than the window at most; of the others n_discard or, unless it says, half.
// At least one stays behind the gap. REQUIRES: window >= 5; length >= window - 1.
ContextShift context_shift_of(const Request& request, Tokens length, Tokens window, bool adds_bos);

}  // namespace fermata
