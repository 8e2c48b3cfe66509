// What an import or a damaged folder may hold: the first byte chooses what, the rest is a parcel,
// or the inside of a manifest or of a record of the journal, with checksums that are right.
// Whatever it is, what is taken is within its limits and is written as it was read.
#include "input.h"
#include "store/encode.h"
#include "store/parcel.h"

#include <vector>

#include <xxhash.h>

namespace fermata::fuzz {
namespace {

using namespace store;

using Raw = std::span<const std::byte>;

void check(const Entry& entry) {
  const Page& page = entry.page;
  require(page.tokens >= Tokens(1) && page.tokens <= page_tokens_max, "tokens within the limit");
  require(page.in_chunks <= page.tokens, "chunks of its own tokens");
  require(page.price_seconds >= 0, "a price");
  require(page.name.empty() || valid_name(page.name), "a name");
  require(entry.blocks.size() == block_count(page.kind, page.tokens), "its blocks");
  Bytes sum;
  for (const BlockRef& block : entry.blocks) sum += block.bytes;
  require(sum == page.bytes, "its bytes");
}

void read_manifest(Raw inside) {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  out.text("FRMTpag\n");
  out.number(format_version);
  out.number(static_cast<std::uint32_t>(inside.size() + 32));
  out.bytes(inside);
  out.bytes(content_id({}, std::vector(bytes)).bytes);
  const auto read = decode_manifest(bytes);
  if (!read.value) return;
  check(read.value->entry);
  const auto again = encode_manifest(read.value->entry, read.value->tokens, read.value->extra);
  require(decode_manifest(again).value.has_value(), "what was read is written");
}

void read_record(Raw inside, std::uint32_t type) {
  std::vector<std::byte> record;
  ByteWriter out(record);
  out.number(std::uint32_t{0x43524a46});
  out.number(type);
  out.number(static_cast<std::uint32_t>(inside.size()));
  out.number(std::uint32_t{0});
  out.bytes(inside);
  out.pad_to(8);
  out.number(std::uint64_t{XXH3_64bits(record.data(), record.size())});
  const auto header = encode_journal_header();
  record.insert(record.begin(), header.begin(), header.end());
  JournalReader reader(record);
  Record found;
  if (reader.next(found) == JournalReader::Next::record && found.type == RecordType::put) {
    check(found.entry);
  }
}

void read(Raw bytes) {
  const auto read = read_parcel(bytes);
  if (!read.value) return;
  require(read.value->blocks.size() == block_count(read.value->page.kind, read.value->page.tokens),
          "bytes of each block");
}

}  // namespace
}  // namespace fermata::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fermata::fuzz;
  if (size == 0) return 0;
  const Raw inside = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 8) {
    case 0:
      read(inside);
      break;
    case 1:
    case 2:
      read_manifest(inside);
      break;
    default:
      read_record(inside, data[0] % 8 - 2);
  }
  return 0;
}
