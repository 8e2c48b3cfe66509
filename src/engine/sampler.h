// Chooses tokens for one sequence. Made by a Vocabulary, moved with its request, used by the engine
// of the same model inside step(). The state (penalties, grammar, random numbers) is part of a
// parked sequence, hence clone().
#pragma once

#include "base/types.h"

#include <cstdint>
#include <memory>

namespace fermata::engine {

// Not thread-safe; one owner at a time. Engines know the concrete class of their own vocabulary.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // An independent copy in the same state. Never null.
  virtual std::unique_ptr<Sampler> clone() const = 0;
  // The seed in use, drawn when nobody chose one.
  virtual std::uint32_t seed() const = 0;
  // From the next token on the end of the thoughts is forced. False: there are none now.
  virtual bool end_thoughts() = 0;
};

}  // namespace fermata::engine
