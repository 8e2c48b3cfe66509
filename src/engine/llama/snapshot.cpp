// Whole sequences as bytes, for memories and layouts whose cells do not move in ranges. The library
// writes them; in front stands who wrote them and a checksum, since the library trusts what it
// reads.
#include "base/check.h"
#include "base/log.h"
#include "engine/llama/engine.h"
#include "engine/llama/log_sink.h"

#include <cstdint>
#include <cstring>

#include <xxhash.h>

namespace fermata::engine::llama {
namespace {

struct Header {
  std::uint64_t mark;
  std::uint64_t checksum;  // Of the state.
  std::int64_t tokens;
  std::uint64_t state_bytes;
};

}  // namespace

Result<void, MoveFault> LlamaEngine::export_sequence(Seat seat, ByteBuffer& into) {
  const Tokens tokens = position(seat);
  FERMATA_CHECK(tokens > Tokens(0), "a sequence of nothing");
  const std::size_t size = llama_state_seq_get_size(context_.get(), sequence(seat));
  if (!resize(into, sizeof(Header) + size)) return Err{MoveFault::no_room};
  const auto state = std::span(into).subspan(sizeof(Header));
  const std::size_t written = llama_state_seq_get_data(
      context_.get(), reinterpret_cast<std::uint8_t*>(state.data()), state.size(), sequence(seat));
  if (written == 0 || written > size) {
    log_error("libllama cannot write the state of a sequence");
    return Err{MoveFault::unsupported};
  }
  into.resize(sizeof(Header) + written);
  const Header header{snapshot_mark_, XXH3_64bits(state.data(), written), tokens.value, written};
  std::memcpy(into.data(), &header, sizeof header);
  return {};
}

Result<void, MoveFault> LlamaEngine::import_sequence(Seat seat, std::span<const std::byte> bytes) {
  FERMATA_CHECK(position(seat) == Tokens(0), "a sequence onto another");
  Header header{};
  if (bytes.size() <= sizeof header) return Err{MoveFault::foreign};
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto state = bytes.subspan(sizeof header);
  if (header.mark != snapshot_mark_ || header.state_bytes != state.size() ||
      header.checksum != XXH3_64bits(state.data(), state.size())) {
    return Err{MoveFault::foreign};
  }
  const LibraryErrors errors(LibraryErrors::Echo::nothing);
  const std::size_t read =
      llama_state_seq_set_data(context_.get(), reinterpret_cast<const std::uint8_t*>(state.data()),
                               state.size(), sequence(seat));
  if (read == state.size() && position(seat) == Tokens(header.tokens)) return {};
  clear(seat);
  return Err{MoveFault::no_room};
}

}  // namespace fermata::engine::llama
