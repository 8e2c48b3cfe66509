#include "store/catalog.h"

#include "base/check.h"

#include <algorithm>

namespace fermata::store {
namespace {

std::size_t full_blocks(const Entry& entry) {
  return static_cast<std::size_t>((entry.page.tokens / block_tokens.value).value);
}

std::uint32_t tail_of(const Entry& entry) {
  return static_cast<std::uint32_t>(entry.page.tokens.value % block_tokens.value);
}

BlockKey root_of(const Page& page) { return root_key(page.owner, page.fingerprint, page.kind); }

Match match_of(const Page& page, Tokens tokens, std::size_t blocks) {
  return {page.id, tokens, blocks, std::min(page.in_chunks, tokens)};
}

}  // namespace

void Catalog::insert(Entry entry) {
  const PageId id = entry.page.id;
  const auto [at, added] = slots_.try_emplace(id);
  FERMATA_CHECK(added, "a page's id is its own");
  Slot& slot = at->second;
  slot.entry = std::move(entry);
  const Page& page = slot.entry.page;
  if (!page.name.empty()) {
    const bool named = names_.try_emplace({page.owner, page.name}, id).second;
    FERMATA_CHECK(named, "an owner's names are unique");
  }
  for (const BlockRef& ref : slot.entry.blocks) {
    Block& block = blocks_[ref.id];
    if (block.pages == 0 || block.lost) {
      block.bytes = file_bytes(ref);
      block.lost = false;
      block.from_outside = true;
      block_bytes_ += block.bytes;
    }
    if (!page.from_outside) block.from_outside = false;
    ++block.pages;
  }
  manifest_bytes_ += manifest_bytes(slot.entry);
  if (page.pinned) ++pinned_;
  add_to_index(slot);
}

void Catalog::erase(const PageId& id, std::vector<BlockRef>& orphans) {
  const auto at = slots_.find(id);
  if (at == slots_.end()) return;
  const Slot& slot = at->second;
  const Page& page = slot.entry.page;
  remove_from_index(slot);
  forget_name(id);
  for (const BlockRef& ref : slot.entry.blocks) {
    const auto block = blocks_.find(ref.id);
    FERMATA_CHECK(block != blocks_.end() && block->second.pages > 0, "blocks are counted");
    if (--block->second.pages > 0) continue;
    if (!block->second.lost) {
      block_bytes_ -= block->second.bytes;
      orphans.push_back(ref);
    }
    blocks_.erase(block);
  }
  manifest_bytes_ -= manifest_bytes(slot.entry);
  if (page.pinned) --pinned_;
  touched_.erase(id);
  slots_.erase(at);
}

void Catalog::replace(Entry entry) {
  const auto at = slots_.find(entry.page.id);
  FERMATA_CHECK(at != slots_.end() && at->second.entry.blocks == entry.blocks,
                "another form of the same page");
  Entry& old = at->second.entry;
  forget_name(entry.page.id);
  if (!entry.page.name.empty()) {
    const bool named = names_.try_emplace({entry.page.owner, entry.page.name}, at->first).second;
    FERMATA_CHECK(named, "an owner's names are unique");
  }
  manifest_bytes_ += manifest_bytes(entry) - manifest_bytes(old);
  pinned_ += entry.page.pinned ? 1 : 0;
  pinned_ -= old.page.pinned ? 1 : 0;
  // A load may have used it meanwhile.
  entry.page.last_used = std::max(entry.page.last_used, old.page.last_used);
  old = std::move(entry);
}

void Catalog::forget_name(const PageId& id) {
  const auto at = slots_.find(id);
  if (at == slots_.end()) return;
  const Page& page = at->second.entry.page;
  const auto named = names_.find({page.owner, page.name});
  if (named != names_.end() && named->second == id) names_.erase(named);
}

const Entry* Catalog::find(const PageId& id) const {
  const auto at = slots_.find(id);
  return at == slots_.end() ? nullptr : &at->second.entry;
}

const Entry* Catalog::find(const Owner& owner, std::string_view name) const {
  const auto at = names_.find(NameKey{owner, std::string(name)});
  return at == names_.end() ? nullptr : find(at->second);
}

const Entry* Catalog::find_same(const Entry& entry) const {
  const std::size_t full = full_blocks(entry);
  const auto node = nodes_.find(full == 0 ? root_of(entry.page) : entry.chain[full - 1]);
  if (node == nodes_.end()) return nullptr;
  for (const Ending& ending : node->second.endings) {
    const Entry& other = ending.slot->entry;
    if (other.page.name.empty() && other.page.end == entry.page.end &&
        other.blocks == entry.blocks && other.page.reason != Reason::parked) {
      return &other;
    }
  }
  return nullptr;
}

void Catalog::add_to_index(const Slot& slot) {
  const Entry& entry = slot.entry;
  const std::size_t full = full_blocks(entry);
  for (std::size_t i = 0; i < full; ++i) nodes_[entry.chain[i]].through.push_back(&slot);
  const BlockKey last = full == 0 ? root_of(entry.page) : entry.chain[full - 1];
  nodes_[last].endings.push_back({tail_of(entry), entry.tail_first, entry.tail_last, &slot});
}

void Catalog::remove_from_index(const Slot& slot) {
  const Entry& entry = slot.entry;
  const std::size_t full = full_blocks(entry);
  const BlockKey last = full == 0 ? root_of(entry.page) : entry.chain[full - 1];
  std::vector<Ending>& endings = nodes_[last].endings;
  std::erase_if(endings, [&](const Ending& ending) { return ending.slot == &slot; });
  if (full == 0 && endings.empty()) nodes_.erase(last);
  for (std::size_t i = 0; i < full; ++i) {
    Node& node = nodes_[entry.chain[i]];
    std::erase(node.through, &slot);
    if (node.through.empty() && node.endings.empty()) nodes_.erase(entry.chain[i]);
  }
}

const Catalog::Ending* Catalog::longest_ending(const Node& node, const BlockKey& key,
                                               std::span<const TokenId> rest) const {
  const Ending* best = nullptr;
  for (const Ending& ending : node.endings) {
    const std::size_t n = ending.tail;
    // What came later wins where both are as long.
    if (n > rest.size() || (best != nullptr && n < best->tail)) continue;
    if (n > 0) {
      if (ending.first != rest[0] || ending.last != rest[n - 1]) continue;
      if (next_key(key, rest.first(n)) != ending.slot->entry.page.end) continue;
    }
    best = &ending;
  }
  return best;
}

std::optional<Match> Catalog::match(const Owner& owner, const Fingerprint& fingerprint, Kind kind,
                                    std::span<const TokenId> tokens) const {
  const auto run = static_cast<std::size_t>(block_tokens.value);
  struct Step {
    BlockKey key;
    const Node* node;
  };
  std::vector<Step> path;
  BlockKey key = root_key(owner, fingerprint, kind);
  const auto root = nodes_.find(key);
  path.push_back({key, root == nodes_.end() ? nullptr : &root->second});
  for (std::size_t at = 0; tokens.size() - at >= run; at += run) {
    key = next_key(key, tokens.subspan(at, run));
    const auto node = nodes_.find(key);
    if (node == nodes_.end()) break;
    path.push_back({key, &node->second});
  }
  for (std::size_t depth = path.size(); depth-- > 0;) {
    const auto& [at_key, node] = path[depth];
    if (node == nullptr) continue;
    const auto before = static_cast<std::int64_t>(depth * run);
    const std::span<const TokenId> rest = tokens.subspan(depth * run);
    const Ending* ending = longest_ending(*node, at_key, rest);
    if (ending != nullptr) {
      const Page& page = ending->slot->entry.page;
      return match_of(page, page.tokens, ending->slot->entry.blocks.size());
    }
    if (kind == Kind::blocks && !node->through.empty()) {
      return match_of(node->through.back()->entry.page, Tokens(before), depth);
    }
  }
  return std::nullopt;
}

void Catalog::touch(const PageId& id, std::int64_t now) {
  const auto at = slots_.find(id);
  if (at == slots_.end()) return;
  at->second.entry.page.last_used = now;
  touched_.insert(id);
}

std::vector<std::pair<PageId, std::int64_t>> Catalog::take_touched() {
  std::vector<std::pair<PageId, std::int64_t>> out;
  for (const PageId& id : touched_) {
    if (const Entry* entry = find(id)) out.emplace_back(id, entry->page.last_used);
  }
  touched_.clear();
  return out;
}

bool Catalog::hold(const PageId& id) {
  const auto at = slots_.find(id);
  if (at == slots_.end()) return false;
  ++at->second.holds;
  return true;
}

void Catalog::let_go(const PageId& id) {
  const auto at = slots_.find(id);
  if (at == slots_.end()) return;
  FERMATA_CHECK(at->second.holds > 0, "held before");
  --at->second.holds;
}

bool Catalog::is_held(const PageId& id) const {
  const auto at = slots_.find(id);
  return at != slots_.end() && at->second.holds > 0;
}

std::optional<PageId> Catalog::cheapest(std::int64_t now, const std::vector<PageId>& spared) const {
  const Slot* best = nullptr;
  double best_value = 0;
  for (const auto& [id, slot] : slots_) {
    const Page& page = slot.entry.page;
    if (page.pinned || slot.holds > 0) continue;
    if (std::find(spared.begin(), spared.end(), id) != spared.end()) continue;
    const auto age = static_cast<double>(std::max<std::int64_t>(now - page.last_used, 0));
    const double value = page.price_seconds / (age + 1);
    const bool older =
        best != nullptr && value == best_value && slot.entry.sequence < best->entry.sequence;
    if (best == nullptr || value < best_value || older) {
      best = &slot;
      best_value = value;
    }
  }
  if (best == nullptr) return std::nullopt;
  return best->entry.page.id;
}

std::vector<PageId> Catalog::unused_since(std::int64_t before) const {
  std::vector<PageId> out;
  for (const auto& [id, slot] : slots_) {
    const Page& page = slot.entry.page;
    if (!page.pinned && slot.holds == 0 && page.last_used < before) out.push_back(id);
  }
  return out;
}

bool Catalog::has_block(const ContentId& id) const {
  const auto at = blocks_.find(id);
  return at != blocks_.end() && !at->second.lost;
}

bool Catalog::is_from_outside(const ContentId& id) const {
  const auto at = blocks_.find(id);
  return at != blocks_.end() && at->second.from_outside;
}

void Catalog::lose_block(const ContentId& id) {
  const auto at = blocks_.find(id);
  if (at == blocks_.end() || at->second.lost) return;
  at->second.lost = true;
  block_bytes_ -= at->second.bytes;
}

}  // namespace fermata::store
