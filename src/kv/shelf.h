// Conversations that nobody computes, out of the pool, in RAM: what a later request may start from
// when no seat holds its beginning any more. The one unused for longest goes first.
#pragma once

#include "base/types.h"
#include "core/geometry.h"
#include "kv/image.h"
#include "kv/vault.h"

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace fermata::kv {

// What can be had of an entry for one prompt.
struct Offer {
  Tokens reuse;  // Tokens of the prompt that need not be computed; always less than all of them.
  Tokens cells;  // Cells that bringing them back takes for a moment: the pieces they lie in.
};

struct ShelfOptions {
  Tokens block = block_tokens;  // What the index grows by.
  Tokens chunk{0};              // See Pool.
  Tokens least{32};             // Shorter ones are computed as fast.
  bool cuts = true;             // Memory that keeps any prefix; else an entry is used whole.
};

struct ShelfStats {
  std::uint64_t stored = 0, hits = 0, superseded = 0, evicted = 0;
};

// The scheduler thread's own. Lives shorter than its vault.
class Shelf {
 public:
  static constexpr std::size_t entries_max = 1024;

  Shelf(Vault& vault, const ShelfOptions& options) : vault_(vault), options_(options) {}

  // Takes a conversation whose pieces cover all its tokens and are held as cached. One that is a
  // beginning of it gives way, where any prefix of it can be had; one that begins like it and goes
  // on is enough.
  void put(Image image);
  // The most that any entry can spare for the prompt; 0: nothing.
  Offer offer(std::span<const TokenId> prompt, const Owner& owner) const;
  // A share of the pieces that the offer lies in; empty when there is no such offer any more.
  Image share(std::span<const TokenId> prompt, Offer offer, const Owner& owner);
  // Whether so many more cached bytes fit, others being dropped as far as needed.
  bool make_room(Bytes more);
  // Calls `with` for each entry.
  template <class F>
  void for_each(F&& with) const {
    for (const Image& entry : entries_) with(entry);
  }
  // Drops those of which `is_one` says so.
  void forget(const std::function<bool(const Image&)>& is_one);
  // Drops entries until the budget holds what is left.
  void trim() { (void)make_room(Bytes(0)); }
  void clear();

  std::size_t size() const { return entries_.size(); }
  const ShelfStats& stats() const { return stats_; }

 private:
  using Entries = std::list<Image>;  // The one unused for longest first.
  struct Found {
    Entries::const_iterator entry;
    Offer offer;
  };

  Found find(std::span<const TokenId> prompt, const Owner& owner) const;
  Offer offer_of(const Image& entry, std::span<const TokenId> prompt) const;
  std::vector<std::uint64_t> keys_of(std::span<const TokenId> tokens) const;
  void drop(Entries::iterator entry);

  Vault& vault_;
  const ShelfOptions options_;
  Entries entries_;
  // By the digest of each whole number of blocks that an entry begins with, none included.
  std::unordered_multimap<std::uint64_t, Entries::iterator> index_;
  ShelfStats stats_;
};

}  // namespace fermata::kv
