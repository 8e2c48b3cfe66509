// Turns texts into vectors: apart from every engine of the same model, with memory of its own that
// is empty before and after each call.
#pragma once

#include "base/types.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fermata::engine {

// How the rows of a text become its vector.
enum class Pooling : std::uint8_t {
  none,  // Each row is one.
  mean,
  cls,   // The first row.
  last,  // The last row.
};
std::string_view name(Pooling pooling);
std::optional<Pooling> pooling_from(std::string_view name);

struct EmbedderLimits {
  Tokens text;         // The longest text.
  Tokens together;     // Tokens of the texts of one call; a longer text is computed alone.
  std::int32_t texts;  // Of one call.
  std::int32_t width;  // Of a vector.
};

using Vector = std::vector<float>;
// One vector, or with Pooling::none one for each token.
using TextVectors = std::vector<Vector>;

enum class EmbedOutcome : std::uint8_t {
  done,
  cancelled,  // Between two parts of a long text.
  failed,     // The library could not; the next call may go well.
};

// All methods on one thread at a time.
class Embedder {
 public:
  virtual ~Embedder() = default;

  virtual Pooling pooling() const = 0;               // Constant; thread-safe.
  virtual const EmbedderLimits& limits() const = 0;  // Constant; thread-safe.
  // Gives its memory back until the next call, which takes it again, and may fail for want of it.
  virtual void sleep() = 0;
  // out[i] are the vectors of texts[i].
  // REQUIRES: 1 <= texts <= limits().texts; each of 1 to limits().text tokens of the vocabulary;
  // one text, or limits().together tokens at most.
  [[nodiscard]] virtual EmbedOutcome embed(std::span<const std::span<const TokenId>> texts,
                                           const std::atomic<bool>& cancelled,
                                           std::vector<TextVectors>& out) = 0;
};

}  // namespace fermata::engine
