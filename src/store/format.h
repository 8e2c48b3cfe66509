// Bytes of format 1 on disk; docs/store-format.md describes them. Reading checks everything and
// never trusts a length.
#pragma once

#include "store/page.h"
#include "store/tier.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fermata::store {

inline constexpr std::uint32_t format_version = 1;

// A page as the index and the journal know it: all but its tokens and its extra bytes.
struct Entry {
  Page page;
  std::uint64_t sequence = 0;           // Grows with each page and each change of one.
  std::vector<BlockKey> chain;          // Of all its tokens; see chain_of().
  std::vector<BlockRef> blocks;         // block_count() of them.
  TokenId tail_first{0}, tail_last{0};  // Of the tokens behind the last full block, if any.
  std::uint32_t extra_bytes = 0;
};

// Of its manifest's file.
Bytes manifest_bytes(const Entry& entry);
inline constexpr std::size_t manifest_bytes_max = std::size_t{24} << 20;

// Why bytes were not taken.
enum class Fault : std::uint8_t {
  damaged,  // Cut short, changed, or out of its limits.
  foreign,  // Not of this format or version.
};

template <class T>
struct Decoded {
  std::optional<T> value;  // None: `fault` tells.
  Fault fault = Fault::damaged;
};

struct Manifest {
  Entry entry;
  std::vector<TokenId> tokens;
  std::vector<std::byte> extra;
};

std::vector<std::byte> encode_manifest(const Entry& entry, std::span<const TokenId> tokens,
                                       std::span<const std::byte> extra);
// Also checks that the chain is that of the tokens.
Decoded<Manifest> decode_manifest(std::span<const std::byte> bytes);

inline constexpr std::size_t block_header_bytes = 88;
using BlockHeader = std::array<std::byte, block_header_bytes>;
BlockHeader encode_block_header(const BlockRef& block, const Fingerprint& fingerprint);

enum class HeaderCheck : std::uint8_t { good, damaged, foreign_format, foreign_fingerprint };
HeaderCheck check_block_header(std::span<const std::byte> bytes, const BlockRef& block,
                               const Fingerprint& fingerprint);

// Journal.
enum class RecordType : std::uint32_t { put = 1, erase = 2, touch = 3, closed = 4, opened = 5 };

inline constexpr std::size_t journal_header_bytes = 24;
std::array<std::byte, journal_header_bytes> encode_journal_header();

void append_put(std::vector<std::byte>& out, const Entry& entry);
void append_erase(std::vector<std::byte>& out, const PageId& id);
void append_touch(std::vector<std::byte>& out, const PageId& id, std::int64_t last_used);
void append_mark(std::vector<std::byte>& out, RecordType closed_or_opened);

struct Record {
  RecordType type = RecordType::put;
  Entry entry;                 // put
  PageId id;                   // erase, touch
  std::int64_t last_used = 0;  // touch
};

// Reads records one after the other.
class JournalReader {
 public:
  explicit JournalReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  enum class Next : std::uint8_t {
    record,   // `out` holds it.
    end,      // Nothing is left.
    torn,     // What is left is the beginning of a record and nothing behind it: position().
    damaged,  // There are good records behind a bad one, or the header is bad.
    foreign,  // Of another version.
  };
  Next next(Record& out);
  std::size_t position() const { return at_; }  // Behind the last good record.

 private:
  std::size_t good_record_at(std::size_t at, std::span<const std::byte>& payload,
                             std::uint32_t& type) const;

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace fermata::store
