// What is stored, in memory: pages by id, by name and by the longest prefix; blocks and how many
// pages refer to each; who goes next. No I/O and no lock of its own: its keeper has one.
#pragma once

#include "base/types.h"
#include "store/format.h"
#include "store/page.h"
#include "store/tier.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fermata::store {

class Catalog {
 public:
  // REQUIRES: no page has its id, nor its name for its owner.
  void insert(Entry entry);
  // Forgets the page. What no other page refers to is added to `orphans`. No effect when absent.
  void erase(const PageId& id, std::vector<BlockRef>& orphans);

  // Another form of a page that is there, with the same tokens and blocks. REQUIRES: its name is
  // free, or its own.
  void replace(Entry entry);
  // Its name is free for another page.
  void forget_name(const PageId& id);

  // Valid until the page is erased. None: no such page.
  const Entry* find(const PageId& id) const;
  const Entry* find(const Owner& owner, std::string_view name) const;
  // The nameless page of the same tokens and the same bytes, but for those of parked requests.
  const Entry* find_same(const Entry& entry) const;
  std::optional<Match> match(const Owner& owner, const Fingerprint& fingerprint, Kind kind,
                             std::span<const TokenId> tokens) const;
  template <class F>
  void for_each(F&& with) const {
    for (const auto& [id, slot] : slots_) with(slot.entry);
  }

  void touch(const PageId& id, std::int64_t now);
  // Pages touched since the last call.
  std::vector<std::pair<PageId, std::int64_t>> take_touched();
  bool hold(const PageId& id);
  void let_go(const PageId& id);
  bool is_held(const PageId& id) const;

  // Whose loss costs least: the smallest price / age. Neither pinned, held, nor `spared`.
  std::optional<PageId> cheapest(std::int64_t now, const std::vector<PageId>& spared) const;
  // Not used since `before`; neither pinned nor held.
  std::vector<PageId> unused_since(std::int64_t before) const;

  bool has_block(const ContentId& id) const;
  // Its bytes came with imported pages alone. False: there is no such block.
  bool is_from_outside(const ContentId& id) const;
  // Its bytes are lost: whoever stores such a block has to write it again.
  void lose_block(const ContentId& id);

  std::size_t pages() const { return slots_.size(); }
  std::size_t pinned() const { return pinned_; }
  std::size_t blocks() const { return blocks_.size(); }
  // On disk: blocks that are not lost with their headers, and manifests.
  Bytes bytes() const { return block_bytes_ + manifest_bytes_; }
  Bytes block_bytes() const { return block_bytes_; }

 private:
  struct Slot {
    Entry entry;
    int holds = 0;
  };
  struct Ending {
    std::uint32_t tail = 0;  // Tokens behind the node.
    TokenId first{0}, last{0};
    const Slot* slot = nullptr;
  };
  // Some full blocks from the start on.
  struct Node {
    std::vector<const Slot*> through;  // Pages that hold them, in the order they came.
    std::vector<Ending> endings;       // Pages that end before the next full block does.
  };
  struct Block {
    Bytes bytes;
    std::size_t pages = 0;
    bool lost = false;
    bool from_outside = false;
  };
  using NameKey = std::pair<Owner, std::string>;

  const Ending* longest_ending(const Node& node, const BlockKey& key,
                               std::span<const TokenId> rest) const;
  void add_to_index(const Slot& slot);
  void remove_from_index(const Slot& slot);

  std::unordered_map<PageId, Slot> slots_;
  std::map<NameKey, PageId, std::less<>> names_;
  std::unordered_map<BlockKey, Node> nodes_;
  std::unordered_map<ContentId, Block> blocks_;
  std::unordered_set<PageId> touched_;
  std::size_t pinned_ = 0;
  Bytes block_bytes_, manifest_bytes_;
};

// Of a block's file.
constexpr Bytes file_bytes(const BlockRef& block) {
  return block.bytes + Bytes(static_cast<std::int64_t>(block_header_bytes));
}

}  // namespace fermata::store
