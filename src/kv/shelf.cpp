#include "kv/shelf.h"

#include "base/check.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <xxhash.h>

namespace fermata::kv {
namespace {

Tokens length(std::span<const TokenId> tokens) {
  return Tokens(static_cast<std::int64_t>(tokens.size()));
}

}  // namespace

// keys[k] stands for the first k blocks.
std::vector<std::uint64_t> Shelf::keys_of(std::span<const TokenId> tokens) const {
  const auto block = static_cast<std::size_t>(options_.block.value);
  std::vector<std::uint64_t> out{0};
  for (std::size_t end = block; end <= tokens.size(); end += block) {
    const auto part = tokens.subspan(end - block, block);
    out.push_back(XXH3_64bits_withSeed(part.data(), part.size_bytes(), out.back()));
  }
  return out;
}

Offer Shelf::offer_of(const Image& entry, std::span<const TokenId> prompt) const {
  const Tokens common = common_prefix(entry.tokens, prompt.first(prompt.size() - 1));
  const Tokens whole = length(entry.tokens);
  Tokens reuse = common;
  if (options_.chunk > Tokens(0)) {
    reuse = std::min(common - Tokens(common.value % options_.chunk.value), entry.in_chunks);
  }
  if (!options_.cuts && reuse != whole) return {};
  if (reuse < options_.least) return {};
  Tokens cells{0};
  for (const Piece& piece : entry.pieces) {
    if (cells >= reuse) break;
    cells += piece.tokens();
  }
  return {reuse, cells};
}

Shelf::Found Shelf::find(std::span<const TokenId> prompt, const Owner& owner) const {
  Found best{entries_.end(), {}};
  if (entries_.empty() || prompt.size() < 2) return best;
  const std::vector<std::uint64_t> keys = keys_of(prompt.first(prompt.size() - 1));
  std::size_t level = 0;
  while (level + 1 < keys.size() && index_.contains(keys[level + 1])) ++level;
  // Who begins with fewer of the blocks has less in common than these blocks hold.
  for (;; --level) {
    const auto [first, last] = index_.equal_range(keys[level]);
    for (auto it = first; it != last; ++it) {
      if (it->second->owner != owner) continue;
      const Offer offer = offer_of(*it->second, prompt);
      const bool more = offer.reuse > best.offer.reuse ||
                        (offer.reuse == best.offer.reuse && offer.cells < best.offer.cells);
      if (more) best = {it->second, offer};
    }
    const auto held = options_.block * static_cast<std::int64_t>(level);
    if (level == 0 || best.offer.reuse >= held) return best;
  }
}

Offer Shelf::offer(std::span<const TokenId> prompt, const Owner& owner) const {
  return find(prompt, owner).offer;
}

Image Shelf::share(std::span<const TokenId> prompt, Offer offer, const Owner& owner) {
  const Found found = find(prompt, owner);
  if (found.entry == entries_.end() || found.offer.reuse < offer.reuse ||
      found.offer.cells > offer.cells) {
    return {};
  }
  entries_.splice(entries_.end(), entries_, found.entry);
  ++stats_.hits;
  Image out;
  Tokens cells{0};
  for (const Piece& piece : found.entry->pieces) {
    if (cells >= found.offer.cells) break;
    out.pieces.push_back(piece.share());
    cells += piece.tokens();
  }
  const auto& tokens = found.entry->tokens;
  out.tokens.assign(tokens.begin(), tokens.begin() + cells.value);
  out.in_chunks = std::min(found.entry->in_chunks, cells);
  out.owner = owner;
  return out;
}

void Shelf::put(Image image) {
  FERMATA_CHECK(tokens_of(image.pieces) == length(image.tokens), "a conversation with gaps");
  if (length(image.tokens) < options_.least) return;
  const std::vector<std::uint64_t> keys = keys_of(image.tokens);
  std::vector<Entries::iterator> beginnings;
  const auto [first, last] = index_.equal_range(keys.back());
  for (auto it = first; it != last; ++it) {
    const bool same_kind = options_.cuts || it->second->tokens.size() == image.tokens.size();
    if (!same_kind || common_prefix(it->second->tokens, image.tokens) != length(image.tokens)) {
      continue;
    }
    if (it->second->owner != image.owner || it->second->in_chunks < image.in_chunks) continue;
    entries_.splice(entries_.end(), entries_, it->second);
    return;
  }
  for (auto it = entries_.begin(); options_.cuts && it != entries_.end(); ++it) {
    const Tokens all = length(it->tokens);
    if (it->owner == image.owner && all <= length(image.tokens) &&
        common_prefix(it->tokens, image.tokens) == all && it->in_chunks <= image.in_chunks) {
      beginnings.push_back(it);
    }
  }
  for (const Entries::iterator entry : beginnings) {
    drop(entry);
    ++stats_.superseded;
  }
  if (entries_.size() == entries_max) {
    drop(entries_.begin());
    ++stats_.evicted;
  }
  entries_.push_back(std::move(image));
  for (const std::uint64_t key : keys) index_.emplace(key, std::prev(entries_.end()));
  ++stats_.stored;
}

void Shelf::drop(Entries::iterator entry) {
  for (const std::uint64_t key : keys_of(entry->tokens)) {
    const auto [first, last] = index_.equal_range(key);
    const auto named = std::find_if(first, last, [&](const auto& e) { return e.second == entry; });
    FERMATA_CHECK(named != last, "an entry that the index does not know");
    index_.erase(named);
  }
  entries_.erase(entry);
}

void Shelf::forget(const std::function<bool(const Image&)>& is_one) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (is_one(*entry)) drop(entry);
    entry = next;
  }
}

bool Shelf::make_room(Bytes more) {
  while (!vault_.has_room(more, Hold::cached)) {
    if (entries_.empty()) return false;
    drop(entries_.begin());
    ++stats_.evicted;
  }
  return true;
}

void Shelf::clear() {
  index_.clear();
  entries_.clear();
}

}  // namespace fermata::kv
