// Ranges of cells as bytes: our header in front of what the library writes for a sequence.
#pragma once

#include "base/types.h"
#include "engine/engine.h"
#include "engine/llama/state_format.h"
#include "engine/model.h"

#include <cstddef>
#include <optional>
#include <span>

namespace fermata::engine::llama {

class RangeCodec final : public RangeCheck {
 public:
  // `format` names everything that must be equal for bytes to have a meaning: model, KV types,
  // library, layout of V, choice of rope factors.
  RangeCodec(CacheShape shape, const Fingerprint& format)
      : shape_(std::move(shape)), format_(format) {}

  static constexpr std::size_t header_bytes = 64;
  std::size_t size_of(Tokens cells) const { return header_bytes + shape_.state_bytes(cells); }

  bool v_transposed() const { return shape_.v_transposed; }

  // REQUIRES: bytes.size() == size_of(end - begin).
  void write_header(std::span<std::byte> bytes, Tokens begin, Tokens end) const;

  struct Range {
    Tokens begin;
    Tokens end;
    std::span<const std::byte> state;
  };
  // Empty when the bytes are anything but one whole range in this format.
  std::optional<Range> read(std::span<const std::byte> bytes) const;
  bool is_sound(std::span<const std::byte> bytes, Tokens begin, Tokens end) const override;
  // Whether it is what lies behind the header of a range from the first token on.
  bool is_state(Tokens tokens, std::span<const std::byte> state) const;

 private:
  CacheShape shape_;
  Fingerprint format_;
};

}  // namespace fermata::engine::llama
