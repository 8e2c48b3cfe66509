#include "core/context_shift.h"

#include "base/check.h"

#include <algorithm>

namespace fermata {

ContextShift context_shift_of(const Request& request, Tokens length, Tokens window, bool adds_bos) {
  constexpr Tokens least_room{4};
  FERMATA_CHECK(window > least_room && length >= window - Tokens(1), "a window that is not full");
  Tokens keep = request.n_keep;
  if (keep < Tokens(0)) keep = Tokens(static_cast<std::int64_t>(request.prompt.size()));
  if (adds_bos) keep += Tokens(1);
  keep = std::min(keep, window - least_room);
  const Tokens rest = length - keep;
  const Tokens wanted = request.n_discard > Tokens(0) ? request.n_discard : rest / 2;
  return {keep, std::clamp(wanted, Tokens(1), rest - Tokens(1))};
}

}  // namespace fermata
