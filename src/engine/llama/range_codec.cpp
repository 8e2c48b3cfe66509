#include "engine/llama/range_codec.h"

#include "base/check.h"
#include "core/geometry.h"

#include <cstdint>
#include <cstring>

namespace fermata::engine::llama {
namespace {

// Little-endian, as every machine the library runs on.
struct Header {
  char magic[4];
  std::uint32_t version;
  std::int64_t begin;
  std::int64_t end;
  std::uint64_t state_bytes;
  std::byte format[32];
};
static_assert(sizeof(Header) == RangeCodec::header_bytes);

constexpr char range_magic[4] = {'F', 'R', 'N', 'G'};
constexpr std::uint32_t range_version = 1;

}  // namespace

void RangeCodec::write_header(std::span<std::byte> bytes, Tokens begin, Tokens end) const {
  FERMATA_CHECK(bytes.size() == size_of(end - begin), "a range of another size");
  Header header{};
  std::memcpy(header.magic, range_magic, sizeof(range_magic));
  header.version = range_version;
  header.begin = begin.value;
  header.end = end.value;
  header.state_bytes = bytes.size() - header_bytes;
  std::memcpy(header.format, format_.data(), format_.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
}

bool RangeCodec::is_state(Tokens tokens, std::span<const std::byte> state) const {
  return tokens > Tokens(0) && tokens <= n_ctx_max && shape_.holds(state, Tokens(0), tokens);
}

bool RangeCodec::is_sound(std::span<const std::byte> bytes, Tokens begin, Tokens end) const {
  const auto range = read(bytes);
  return range && range->begin == begin && range->end == end &&
         shape_.is_finite(range->state, end - begin);
}

std::optional<RangeCodec::Range> RangeCodec::read(std::span<const std::byte> bytes) const {
  Header header{};
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const Tokens begin(header.begin);
  const Tokens end(header.end);
  const auto state = bytes.subspan(header_bytes);
  if (std::memcmp(header.magic, range_magic, sizeof(range_magic)) != 0 ||
      header.version != range_version || header.state_bytes != state.size() ||
      std::memcmp(header.format, format_.data(), format_.size()) != 0 || begin < Tokens(0) ||
      end <= begin || end > n_ctx_max || !shape_.holds(state, begin, end)) {
    return std::nullopt;
  }
  return Range{begin, end, state};
}

}  // namespace fermata::engine::llama
