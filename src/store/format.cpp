#include "store/format.h"

#include "store/encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include <xxhash.h>

namespace fermata::store {
namespace {

constexpr std::string_view block_magic = "FRMTblk\n";
constexpr std::string_view manifest_magic = "FRMTpag\n";
constexpr std::string_view journal_magic = "FRMTjrn\n";
constexpr std::uint32_t record_magic = 0x4352'4a46;  // "FJRC"
constexpr std::size_t record_head_bytes = 16;
constexpr std::size_t record_grain = 8;
constexpr std::size_t payload_bytes_max = std::size_t{2} << 20;
constexpr std::size_t manifest_head_bytes = 16;
constexpr std::size_t digest_bytes = 16;
// Of an entry without its name, chain and blocks.
constexpr std::size_t entry_fixed_bytes =
    16 + 8 + 32 + 32 + 4 + 8 + 8 + 8 + 4 + 4 + 4 + 4 + 4 + 4 + 4;
constexpr std::size_t block_ref_bytes = 16 + 4 + 8;
constexpr std::uint8_t flag_pinned = 1;
constexpr std::uint8_t flag_from_outside = 2;

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::array<std::byte, digest_bytes> digest_of(std::span<const std::byte> bytes) {
  return content_id(Fingerprint{}, bytes).bytes;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

void write_entry(ByteWriter& out, const Entry& entry) {
  const Page& page = entry.page;
  out.bytes(page.id.bytes);
  out.number(entry.sequence);
  out.bytes(page.owner.bytes);
  out.bytes(page.fingerprint);
  out.number(static_cast<std::uint8_t>(page.kind));
  out.number(static_cast<std::uint8_t>(page.reason));
  out.number(static_cast<std::uint8_t>((page.pinned ? flag_pinned : 0) |
                                       (page.from_outside ? flag_from_outside : 0)));
  out.number(static_cast<std::uint8_t>(page.name.size()));
  out.number(page.price_seconds);
  out.number(page.created);
  out.number(page.last_used);
  out.number(static_cast<std::uint32_t>(page.tokens.value));
  out.number(static_cast<std::uint32_t>(page.in_chunks.value));
  out.number(raw(entry.tail_first));
  out.number(raw(entry.tail_last));
  out.number(entry.extra_bytes);
  out.number(static_cast<std::uint32_t>(entry.chain.size()));
  out.number(static_cast<std::uint32_t>(entry.blocks.size()));
  out.text(page.name);
  for (const BlockKey& key : entry.chain) out.bytes(key.bytes);
  for (const BlockRef& block : entry.blocks) {
    out.bytes(block.id.bytes);
    out.number(static_cast<std::uint32_t>(block.tokens.value));
    out.number(static_cast<std::uint64_t>(block.bytes.value));
  }
}

// Whether the numbers of an entry can be those of a page.
bool is_sound(const Entry& entry) {
  const Page& page = entry.page;
  if (page.kind > Kind::snapshot || page.reason > Reason::client_request) return false;
  if (!page.name.empty() && !valid_name(page.name)) return false;
  if (!std::isfinite(page.price_seconds) || page.price_seconds < 0) return false;
  if (page.tokens < Tokens(1) || page.tokens > page_tokens_max) return false;
  if (page.in_chunks > page.tokens || entry.extra_bytes > extra_bytes_max) return false;
  return true;
}

bool read_blocks(ByteReader& in, Entry& entry, std::size_t chain, std::size_t blocks) {
  Page& page = entry.page;
  if (chain != block_count(Kind::blocks, page.tokens)) return false;
  if (blocks != block_count(page.kind, page.tokens)) return false;
  if (in.left() < chain * BlockKey::size + blocks * block_ref_bytes) return false;
  entry.chain.resize(chain);
  for (BlockKey& key : entry.chain) in.digest(key.bytes);
  entry.blocks.resize(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    BlockRef& block = entry.blocks[i];
    in.digest(block.id.bytes);
    block.tokens = Tokens(in.number<std::uint32_t>());
    const auto bytes = in.number<std::uint64_t>();
    if (bytes == 0 || bytes > static_cast<std::uint64_t>(block_bytes_max.value)) return false;
    if (block.tokens != tokens_of_block(page.kind, page.tokens, i)) return false;
    block.bytes = Bytes(static_cast<std::int64_t>(bytes));
    page.bytes += block.bytes;
  }
  page.end = entry.chain.back();
  return in.good();
}

bool read_entry(ByteReader& in, Entry& entry) {
  Page& page = entry.page;
  page = Page{};
  in.digest(page.id.bytes);
  entry.sequence = in.number<std::uint64_t>();
  in.digest(page.owner.bytes);
  in.digest(page.fingerprint);
  page.kind = static_cast<Kind>(in.number<std::uint8_t>());
  page.reason = static_cast<Reason>(in.number<std::uint8_t>());
  const auto flags = in.number<std::uint8_t>();
  const auto name_bytes = in.number<std::uint8_t>();
  page.pinned = (flags & flag_pinned) != 0;
  page.from_outside = (flags & flag_from_outside) != 0;
  page.price_seconds = in.number<double>();
  page.created = in.number<std::int64_t>();
  page.last_used = in.number<std::int64_t>();
  page.tokens = Tokens(in.number<std::uint32_t>());
  page.in_chunks = Tokens(in.number<std::uint32_t>());
  entry.tail_first = TokenId{in.number<std::int32_t>()};
  entry.tail_last = TokenId{in.number<std::int32_t>()};
  entry.extra_bytes = in.number<std::uint32_t>();
  const auto chain = in.number<std::uint32_t>();
  const auto blocks = in.number<std::uint32_t>();
  const std::span<const std::byte> name = in.bytes(name_bytes);
  if (!in.good()) return false;
  page.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  return is_sound(entry) && read_blocks(in, entry, chain, blocks);
}

// Fills in the length and the checksum of the record that began at `at`.
void end_record(std::vector<std::byte>& out, std::size_t at) {
  const auto length = static_cast<std::uint32_t>(out.size() - at - record_head_bytes);
  std::memcpy(out.data() + at + 8, &length, sizeof length);
  ByteWriter writer(out);
  while ((out.size() - at) % record_grain != 0) writer.number(std::uint8_t{0});
  writer.number(checksum(std::span(out).subspan(at)));
}

std::size_t begin_record(std::vector<std::byte>& out, RecordType type) {
  const std::size_t at = out.size();
  ByteWriter writer(out);
  writer.number(record_magic);
  writer.number(static_cast<std::uint32_t>(type));
  writer.number(std::uint64_t{0});
  return at;
}

bool read_record(std::uint32_t type, std::span<const std::byte> payload, Record& out) {
  ByteReader in(payload);
  out.type = static_cast<RecordType>(type);
  switch (out.type) {
    case RecordType::put:
      return read_entry(in, out.entry) && in.left() == 0;
    case RecordType::erase:
      in.digest(out.id.bytes);
      return in.good() && in.left() == 0;
    case RecordType::touch:
      in.digest(out.id.bytes);
      out.last_used = in.number<std::int64_t>();
      return in.good() && in.left() == 0;
    case RecordType::closed:
    case RecordType::opened:
      return in.left() == 0;
  }
  return false;
}

}  // namespace

Bytes manifest_bytes(const Entry& entry) {
  const std::size_t size = manifest_head_bytes + entry_fixed_bytes + entry.page.name.size() +
                           entry.chain.size() * BlockKey::size +
                           entry.blocks.size() * block_ref_bytes +
                           static_cast<std::size_t>(entry.page.tokens.value) * sizeof(TokenId) +
                           entry.extra_bytes + digest_bytes;
  return Bytes(static_cast<std::int64_t>(size));
}

std::vector<std::byte> encode_manifest(const Entry& entry, std::span<const TokenId> tokens,
                                       std::span<const std::byte> extra) {
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(manifest_bytes(entry).value));
  ByteWriter out(bytes);
  out.text(manifest_magic);
  out.number(format_version);
  out.number(static_cast<std::uint32_t>(manifest_bytes(entry).value));
  write_entry(out, entry);
  out.bytes(std::as_bytes(tokens));
  out.bytes(extra);
  out.bytes(digest_of(bytes));
  return bytes;
}

Decoded<Manifest> decode_manifest(std::span<const std::byte> bytes) {
  if (bytes.size() < manifest_head_bytes + digest_bytes) return {std::nullopt, Fault::damaged};
  if (!begins_with(bytes, manifest_magic)) return {std::nullopt, Fault::foreign};
  const std::span<const std::byte> body = bytes.first(bytes.size() - digest_bytes);
  const auto digest = digest_of(body);
  const bool intact = std::memcmp(digest.data(), bytes.data() + body.size(), digest_bytes) == 0;
  ByteReader in(body);
  in.bytes(manifest_magic.size());
  // Another version may end otherwise, so it is judged before the digest.
  if (in.number<std::uint32_t>() != format_version) return {std::nullopt, Fault::foreign};
  if (!intact || in.number<std::uint32_t>() != bytes.size()) return {std::nullopt, Fault::damaged};
  Manifest out;
  if (!read_entry(in, out.entry)) return {std::nullopt, Fault::damaged};
  const auto count = static_cast<std::size_t>(out.entry.page.tokens.value);
  const std::span<const std::byte> tokens = in.bytes(count * sizeof(TokenId));
  const std::span<const std::byte> extra = in.bytes(out.entry.extra_bytes);
  if (!in.good() || in.left() != 0) return {std::nullopt, Fault::damaged};
  out.tokens.resize(count);
  std::memcpy(out.tokens.data(), tokens.data(), tokens.size());
  out.extra.assign(extra.begin(), extra.end());
  const Page& page = out.entry.page;
  const BlockKey root = root_key(page.owner, page.fingerprint, page.kind);
  if (chain_of(root, out.tokens) != out.entry.chain) return {std::nullopt, Fault::damaged};
  return {std::move(out), Fault::damaged};
}

BlockHeader encode_block_header(const BlockRef& block, const Fingerprint& fingerprint) {
  std::vector<std::byte> bytes;
  bytes.reserve(block_header_bytes);
  ByteWriter out(bytes);
  out.text(block_magic);
  out.number(format_version);
  out.number(static_cast<std::uint32_t>(block_header_bytes));
  out.bytes(fingerprint);
  out.number(static_cast<std::uint32_t>(block.tokens.value));
  out.number(std::uint32_t{0});
  out.number(static_cast<std::uint64_t>(block.bytes.value));
  out.bytes(block.id.bytes);
  out.number(checksum(bytes));
  BlockHeader header;
  std::copy(bytes.begin(), bytes.end(), header.begin());
  return header;
}

HeaderCheck check_block_header(std::span<const std::byte> bytes, const BlockRef& block,
                               const Fingerprint& fingerprint) {
  if (bytes.size() < block_header_bytes) return HeaderCheck::damaged;
  if (!begins_with(bytes, block_magic)) return HeaderCheck::foreign_format;
  ByteReader in(bytes);
  in.bytes(block_magic.size());
  if (in.number<std::uint32_t>() != format_version) return HeaderCheck::foreign_format;
  const BlockHeader expected = encode_block_header(block, fingerprint);
  if (std::memcmp(bytes.data(), expected.data(), expected.size()) == 0) return HeaderCheck::good;
  std::uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + block_header_bytes - sizeof stored, sizeof stored);
  const bool intact = checksum(bytes.first(block_header_bytes - sizeof stored)) == stored;
  in.number<std::uint32_t>();
  const std::span<const std::byte> theirs = in.bytes(fingerprint.size());
  const bool other = std::memcmp(theirs.data(), fingerprint.data(), fingerprint.size()) != 0;
  return intact && other ? HeaderCheck::foreign_fingerprint : HeaderCheck::damaged;
}

std::array<std::byte, journal_header_bytes> encode_journal_header() {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  out.text(journal_magic);
  out.number(format_version);
  out.number(std::uint32_t{0});
  out.number(checksum(bytes));
  std::array<std::byte, journal_header_bytes> header;
  std::copy(bytes.begin(), bytes.end(), header.begin());
  return header;
}

void append_put(std::vector<std::byte>& out, const Entry& entry) {
  const std::size_t at = begin_record(out, RecordType::put);
  ByteWriter writer(out);
  write_entry(writer, entry);
  end_record(out, at);
}

void append_erase(std::vector<std::byte>& out, const PageId& id) {
  const std::size_t at = begin_record(out, RecordType::erase);
  ByteWriter(out).bytes(id.bytes);
  end_record(out, at);
}

void append_touch(std::vector<std::byte>& out, const PageId& id, std::int64_t last_used) {
  const std::size_t at = begin_record(out, RecordType::touch);
  ByteWriter writer(out);
  writer.bytes(id.bytes);
  writer.number(last_used);
  end_record(out, at);
}

void append_mark(std::vector<std::byte>& out, RecordType closed_or_opened) {
  end_record(out, begin_record(out, closed_or_opened));
}

std::size_t JournalReader::good_record_at(std::size_t at, std::span<const std::byte>& payload,
                                          std::uint32_t& type) const {
  ByteReader in(bytes_.subspan(at));
  const auto magic = in.number<std::uint32_t>();
  type = in.number<std::uint32_t>();
  const auto length = in.number<std::uint32_t>();
  in.number<std::uint32_t>();
  if (!in.good() || magic != record_magic || length > payload_bytes_max) return 0;
  payload = in.bytes(length);
  const std::size_t padding = (record_grain - length % record_grain) % record_grain;
  in.bytes(padding);
  const auto stored = in.number<std::uint64_t>();
  const std::size_t covered = record_head_bytes + length + padding;
  if (!in.good() || checksum(bytes_.subspan(at, covered)) != stored) return 0;
  return covered + sizeof stored;
}

JournalReader::Next JournalReader::next(Record& out) {
  if (at_ == 0) {
    const auto header = encode_journal_header();
    if (bytes_.size() < header.size()) return Next::torn;
    if (std::memcmp(bytes_.data(), header.data(), header.size()) != 0) {
      std::uint64_t stored = 0;
      std::memcpy(&stored, bytes_.data() + header.size() - sizeof stored, sizeof stored);
      const bool intact = checksum(bytes_.first(header.size() - sizeof stored)) == stored;
      return intact && begins_with(bytes_, journal_magic) ? Next::foreign : Next::damaged;
    }
    at_ = header.size();
  }
  if (at_ == bytes_.size()) return Next::end;
  std::span<const std::byte> payload;
  std::uint32_t type = 0;
  const std::size_t size = good_record_at(at_, payload, type);
  if (size > 0 && read_record(type, payload, out)) {
    at_ += size;
    return Next::record;
  }
  if (size > 0) return Next::damaged;  // Whole, and still not one of ours.
  for (std::size_t at = at_ + record_grain; at < bytes_.size(); at += record_grain) {
    if (good_record_at(at, payload, type) > 0) return Next::damaged;
  }
  return Next::torn;
}

}  // namespace fermata::store
