#include "store/parcel.h"

#include "store/encode.h"

#include <cstring>
#include <string_view>
#include <utility>

namespace fermata::store {
namespace {

constexpr std::string_view parcel_magic = "FRMTexp\n";

}  // namespace

std::vector<std::byte> parcel_beginning(Manifest manifest) {
  Entry& entry = manifest.entry;
  Page& page = entry.page;
  page.id = {};
  page.owner = {};
  page.name.clear();
  page.pinned = page.from_outside = false;
  entry.sequence = 0;
  entry.extra_bytes = 0;
  entry.chain = chain_of(root_key(page.owner, page.fingerprint, page.kind), manifest.tokens);
  const std::vector<std::byte> body = encode_manifest(entry, manifest.tokens, {});
  std::vector<std::byte> out;
  ByteWriter to(out);
  to.text(parcel_magic);
  to.number(format_version);
  to.number(static_cast<std::uint32_t>(body.size()));
  to.bytes(body);
  return out;
}

Decoded<Parcel> read_parcel(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const std::span<const std::byte> magic = in.bytes(parcel_magic.size());
  if (magic.empty()) return {};
  if (std::memcmp(magic.data(), parcel_magic.data(), magic.size()) != 0 ||
      in.number<std::uint32_t>() != format_version) {
    return {std::nullopt, Fault::foreign};
  }
  const auto size = in.number<std::uint32_t>();
  Decoded<Manifest> manifest = decode_manifest(in.bytes(size));
  if (!manifest.value) return {std::nullopt, manifest.fault};
  Parcel out;
  const Entry& entry = manifest.value->entry;
  for (const BlockRef& block : entry.blocks) {
    const std::span<const std::byte> body = in.bytes(static_cast<std::size_t>(block.bytes.value));
    if (!in.good() || content_id(entry.page.fingerprint, body) != block.id) return {};
    out.blocks.push_back(body);
  }
  if (!in.good() || in.left() != 0 || entry.extra_bytes != 0) return {};
  out.page = entry.page;
  out.tokens = std::move(manifest.value->tokens);
  return {std::move(out), Fault::damaged};
}

}  // namespace fermata::store
