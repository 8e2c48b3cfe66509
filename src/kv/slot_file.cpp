#include "kv/slot_file.h"

#include "engine/engine.h"

#include <array>
#include <cstring>

namespace fermata::kv {
namespace {

using Word = std::int32_t;

// In front of the tokens, where they are not a plain list as older servers wrote it.
constexpr Word packed_mark = -1;
constexpr Word packed_version = 1;

void put(std::vector<std::byte>& out, const void* from, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(from);
  out.insert(out.end(), begin, begin + bytes);
}

Result<std::vector<TokenId>, SlotFileFault> read_tokens(std::span<const Word> words) {
  if (!words.empty() && words.front() == packed_mark) {
    if (words.size() < 2) return Err{SlotFileFault::malformed};
    if (words[1] != packed_version) return Err{SlotFileFault::other_version};
    if (words.size() < 4 || words[2] < 0 || words.size() - 4 < static_cast<std::size_t>(words[2])) {
      return Err{SlotFileFault::malformed};
    }
    const auto n = static_cast<std::size_t>(words[2]);
    if (words[3 + n] != 0) return Err{SlotFileFault::has_media};
    if (words.size() != 4 + n) return Err{SlotFileFault::malformed};
    words = words.subspan(3, n);
  }
  if (words.empty()) return Err{SlotFileFault::malformed};
  std::vector<TokenId> tokens;
  for (const Word word : words) {
    if (word < 0) return Err{SlotFileFault::malformed};
    tokens.push_back(TokenId{word});
  }
  return tokens;
}

}  // namespace

std::vector<std::byte> slot_file_head(std::span<const TokenId> tokens) {
  const auto n = static_cast<std::uint32_t>(tokens.size());
  const std::array<std::uint32_t, 6> begin{engine::state_file_magic,
                                           engine::state_file_version,
                                           n + 4,
                                           static_cast<std::uint32_t>(packed_mark),
                                           static_cast<std::uint32_t>(packed_version),
                                           n};
  constexpr std::uint32_t no_media = 0;
  std::vector<std::byte> out;
  put(out, begin.data(), sizeof begin);
  put(out, tokens.data(), tokens.size_bytes());
  put(out, &no_media, sizeof no_media);
  return out;
}

Result<SlotFile, SlotFileFault> read_slot_file(std::span<const std::byte> bytes) {
  std::array<std::uint32_t, 3> header{};
  if (bytes.size() < sizeof header) return Err{SlotFileFault::malformed};
  std::memcpy(header.data(), bytes.data(), sizeof header);
  bytes = bytes.subspan(sizeof header);
  if (header[0] != engine::state_file_magic || header[1] != engine::state_file_version ||
      bytes.size() / sizeof(Word) < header[2]) {
    return Err{SlotFileFault::malformed};
  }
  std::vector<Word> words(header[2]);
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(Word));
  auto tokens = read_tokens(words);
  if (!tokens) return Err{tokens.error()};
  return SlotFile{std::move(tokens).value(), bytes.subspan(words.size() * sizeof(Word))};
}

}  // namespace fermata::kv
