// Changes of what is stored. The order is always: bytes, manifest, journal, memory, and what is of
// no use any more last. Stopped anywhere, the journal tells of whole pages alone.
#include "base/check.h"
#include "base/log.h"
#include "store/disk_tier.h"
#include "store/keeper_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>

namespace fermata::store {
namespace {

void check(const Draft& draft, std::span<const BlockBytes> given) {
  const auto tokens = Tokens(static_cast<std::int64_t>(draft.tokens.size()));
  FERMATA_CHECK(tokens >= Tokens(1) && tokens <= page_tokens_max, "tokens within the limit");
  FERMATA_CHECK(given.size() == block_count(draft.kind, tokens), "bytes for each block");
  FERMATA_CHECK(draft.name.empty() || valid_name(draft.name), "names are checked at the edge");
  FERMATA_CHECK(draft.extra.size() <= extra_bytes_max, "extra bytes within the limit");
  FERMATA_CHECK(std::isfinite(draft.price_seconds) && draft.price_seconds >= 0, "a price");
  FERMATA_CHECK(draft.in_chunks <= tokens, "chunks of its own tokens");
  for (const BlockBytes& block : given) {
    FERMATA_CHECK(!block.bytes.empty() &&
                      block.bytes.size() <= static_cast<std::size_t>(block_bytes_max.value),
                  "blocks within the limit");
  }
}

}  // namespace

Outcome Keeper::Parts::make_entry(const Draft& draft, std::span<const BlockBytes> given,
                                  Entry& entry, const std::function<bool()>& go_on) {
  Page& page = entry.page;
  page.owner = draft.owner;
  page.fingerprint = draft.fingerprint;
  page.kind = draft.kind;
  page.reason = draft.reason;
  page.pinned = draft.pinned;
  page.from_outside = draft.from_outside;
  page.name = draft.name;
  page.price_seconds = draft.price_seconds;
  page.created = page.last_used = now();
  page.tokens = Tokens(static_cast<std::int64_t>(draft.tokens.size()));
  page.in_chunks = draft.in_chunks;
  entry.chain = chain_of(root_key(page.owner, page.fingerprint, page.kind), draft.tokens);
  page.end = entry.chain.back();
  entry.extra_bytes = static_cast<std::uint32_t>(draft.extra.size());
  const std::size_t tail = draft.tokens.size() % static_cast<std::size_t>(block_tokens.value);
  if (tail > 0) {
    entry.tail_first = draft.tokens[draft.tokens.size() - tail];
    entry.tail_last = draft.tokens.back();
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (go_on && !go_on()) return Outcome::stopping;
    const auto size = Bytes(static_cast<std::int64_t>(given[i].bytes.size()));
    entry.blocks.push_back({content_id(page.fingerprint, given[i].bytes),
                            tokens_of_block(page.kind, page.tokens, i), size});
    page.bytes += size;
  }
  return Outcome::done;
}

Bytes Keeper::Parts::cost_of(const Entry& entry) const {
  std::unordered_set<ContentId> counted;
  Bytes cost = manifest_bytes(entry);
  for (const BlockRef& block : entry.blocks) {
    if (!catalog.has_block(block.id) && counted.insert(block.id).second) cost += file_bytes(block);
  }
  return cost;
}

Outcome Keeper::Parts::make_room(const Entry& entry, const std::vector<PageId>& spared,
                                 std::size_t more) {
  for (;;) {
    std::optional<PageId> victim;
    Eviction why = Eviction::bytes;
    {
      const std::shared_lock lock(catalog_lock);
      const Bytes cost = cost_of(entry);
      if (options.bytes_max && cost > *options.bytes_max) return Outcome::full;
      const bool fits = !options.bytes_max || catalog.bytes() + cost <= *options.bytes_max;
      if (fits && catalog.pages() + more <= options.pages_max) return Outcome::done;
      if (fits) why = Eviction::count;
      victim = catalog.cheapest(now(), spared);
    }
    if (!victim) return Outcome::full;
    const Outcome outcome = evict({*victim}, why);
    if (outcome != Outcome::done) return outcome;
  }
}

Outcome Keeper::Parts::find_block(const Entry& entry, const BlockRef& block,
                                  std::span<const std::byte> bytes) {
  {
    const std::shared_lock lock(catalog_lock);
    if (!catalog.has_block(block.id)) return Outcome::missing;
    if (!entry.page.from_outside && !catalog.is_from_outside(block.id)) return Outcome::done;
  }
  ByteBuffer there;
  const Outcome outcome = tier->get(block, entry.page.fingerprint, there);
  if (outcome == Outcome::failed) return outcome;
  if (outcome != Outcome::done) {
    const std::unique_lock lock(catalog_lock);
    catalog.lose_block(block.id);
    return Outcome::missing;
  }
  if (std::ranges::equal(there, bytes)) return Outcome::done;
  log_warn("pages: other bytes than those to be stored have the content id {}: somebody made them",
           to_hex(block.id));
  return Outcome::failed;
}

Outcome Keeper::Parts::write_blocks(const Entry& entry, std::span<const BlockBytes> given,
                                    std::vector<BlockRef>& written_now,
                                    const std::function<bool()>& go_on) {
  std::unordered_set<ContentId> done;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (go_on && !go_on()) return Outcome::stopping;
    const BlockRef& block = entry.blocks[i];
    if (!done.insert(block.id).second) continue;
    Outcome outcome = find_block(entry, block, given[i].bytes);
    if (outcome == Outcome::done) continue;
    if (outcome != Outcome::missing) return outcome;
    outcome = tier->put(block, entry.page.fingerprint, given[i].bytes);
    if (outcome != Outcome::done) return outcome;
    written_now.push_back(block);
    written(file_bytes(block));
  }
  return written_now.empty() ? Outcome::done : tier->settle();
}

Outcome Keeper::Parts::write_manifest(const Entry& entry, std::span<const TokenId> tokens,
                                      std::span<const std::byte> extra) {
  const std::vector<std::byte> bytes = encode_manifest(entry, tokens, extra);
  const std::array<std::span<const std::byte>, 1> pieces = {bytes};
  int error = page_folder.write_file(to_hex(entry.page.id), pieces);
  if (error == 0) error = page_folder.sync();
  if (error == 0) {
    written(manifest_bytes(entry));
    return Outcome::done;
  }
  log_warn("pages: manifest {} was not written: {}", to_hex(entry.page.id), std::strerror(error));
  return outcome_of(error) == Outcome::full ? Outcome::full : Outcome::failed;
}

// The longest page that the draft goes on from or is the same as. Under the catalog's lock.
const Entry* Keeper::Parts::beginning_of(const Draft& draft) const {
  const auto match = catalog.match(draft.owner, draft.fingerprint, draft.kind, draft.tokens);
  const Entry* entry = match ? catalog.find(match->page) : nullptr;
  return entry != nullptr && entry->page.tokens == match->tokens ? entry : nullptr;
}

std::vector<PageId> Keeper::Parts::replaced_by(const Draft& draft) const {
  std::vector<PageId> out;
  const std::shared_lock lock(catalog_lock);
  if (!draft.name.empty()) {
    if (const Entry* same_name = catalog.find(draft.owner, draft.name)) {
      out.push_back(same_name->page.id);
    }
  }
  const Entry* before = draft.replaces_beginning ? beginning_of(draft) : nullptr;
  // One that somebody is about to load stays, and goes when its time has come.
  if (before != nullptr && before->page.name.empty() && !before->page.pinned &&
      !catalog.is_held(before->page.id)) {
    out.push_back(before->page.id);
  }
  return out;
}

// What is stored already is not stored twice; a name is one more reason to have it. A page of a
// parked request is its own, since it goes with it.
Outcome Keeper::Parts::refresh_same(const Draft& draft, const Entry& entry, Page& saved,
                                    bool& found) {
  found = false;
  if (draft.reason == Reason::parked) return Outcome::done;
  PageId id;
  {
    const std::unique_lock lock(catalog_lock);
    const Entry* same = draft.name.empty() ? catalog.find_same(entry) : nullptr;
    if (same == nullptr && draft.name.empty() && draft.replaces_beginning) {
      const Entry* before = beginning_of(draft);
      const bool is_it = before != nullptr && before->page.tokens == entry.page.tokens;
      if (is_it && before->page.reason != Reason::parked) same = before;
    }
    found = same != nullptr && (same->page.pinned || !draft.pinned) && entry.extra_bytes == 0 &&
            same->extra_bytes == 0;
    if (!found) return Outcome::done;
    const bool whole = std::all_of(entry.blocks.begin(), entry.blocks.end(),
                                   [&](const BlockRef& b) { return catalog.has_block(b.id); });
    found = whole;
    if (!found) return Outcome::done;
    id = same->page.id;
    catalog.touch(id, now());
    saved = same->page;
  }
  std::vector<PageId> replaced = replaced_by(draft);
  std::erase(replaced, id);
  return evict(replaced, Eviction::replaced);
}

Outcome Keeper::Parts::save(const Draft& draft, std::span<const BlockBytes> given, Page& saved,
                            const std::function<bool()>& go_on) {
  check(draft, given);
  if (!writable()) return Outcome::failed;
  Entry entry;
  Outcome outcome = make_entry(draft, given, entry, go_on);
  if (outcome != Outcome::done) return outcome;
  bool found = false;
  outcome = refresh_same(draft, entry, saved, found);
  if (found || outcome != Outcome::done) return outcome;
  entry.sequence = ++sequence;
  entry.page.id = new_id(entry.page);
  if (options.bytes_per_hour_max) {
    const std::shared_lock lock(catalog_lock);
    if (rate.last_hour(now()) + cost_of(entry) > *options.bytes_per_hour_max) {
      return Outcome::refused_rate;
    }
  }
  const std::vector<PageId> replaced = replaced_by(draft);
  // A page that is replaced is there until the new one is durable, but counts as one with it.
  outcome = make_room(entry, replaced, replaced.empty() ? 1 : 0);
  std::vector<BlockRef> written_now;
  if (outcome == Outcome::done) outcome = write_blocks(entry, given, written_now, go_on);
  if (outcome == Outcome::done) outcome = write_manifest(entry, draft.tokens, draft.extra);
  if (outcome == Outcome::done) {
    Records records;
    records.put(entry);
    for (const PageId& id : replaced) records.erase(id);
    outcome = commit(std::move(records));
  }
  if (outcome != Outcome::done) {
    page_folder.remove(to_hex(entry.page.id));
    for (const BlockRef& block : written_now) tier->erase(block);
    return outcome;
  }
  Leaving leaving;
  {
    const std::unique_lock lock(catalog_lock);
    // The new one first: blocks that both have stay. Its name is free only afterwards.
    for (const PageId& id : replaced) catalog.forget_name(id);
    catalog.insert(entry);
    for (const PageId& id : replaced) leave(id, Eviction::replaced, leaving);
  }
  unlink(leaving);
  saved = std::move(entry.page);
  return Outcome::done;
}

Outcome Keeper::Parts::read_page(const PageId& id, Manifest& out) {
  if (!writable()) return Outcome::failed;
  Entry known;
  {
    const std::shared_lock lock(catalog_lock);
    const Entry* found = catalog.find(id);
    if (found == nullptr) return Outcome::missing;
    known = *found;
  }
  const Outcome outcome = read_manifest(id, out);
  if (outcome == Outcome::failed) return outcome;
  if (outcome != Outcome::done || out.entry.blocks != known.blocks) {
    evict({id}, Eviction::damaged);
    return outcome == Outcome::missing ? outcome : Outcome::damaged;
  }
  out.entry = std::move(known);
  return Outcome::done;
}

Outcome Keeper::Parts::change(const PageId& id, const std::function<Outcome(Entry&)>& edit,
                              bool as_new, Page& page) {
  Manifest manifest;
  Outcome outcome = read_page(id, manifest);
  if (outcome != Outcome::done) return outcome;
  Entry& entry = manifest.entry;
  outcome = edit(entry);
  if (outcome != Outcome::done) return outcome;
  entry.sequence = ++sequence;
  if (as_new) entry.page.id = new_id(entry.page);
  // The old manifest is there until the new one is. The page itself must not make the room.
  outcome = make_room(entry, {id}, as_new ? 1 : 0);
  if (outcome != Outcome::done) return outcome;
  outcome = write_manifest(entry, manifest.tokens, manifest.extra);
  if (outcome == Outcome::done) {
    Records records;
    records.put(entry);
    outcome = commit(std::move(records));
  }
  if (outcome != Outcome::done) {
    if (as_new) page_folder.remove(to_hex(entry.page.id));
    return outcome;
  }
  const std::unique_lock lock(catalog_lock);
  if (as_new) {
    catalog.insert(entry);
  } else {
    catalog.replace(entry);
  }
  page = std::move(entry.page);
  return Outcome::done;
}

Outcome Keeper::save(const Draft& draft, std::span<const BlockBytes> blocks, Page& saved,
                     const std::function<bool()>& go_on) {
  const std::lock_guard lock(parts_->changing);
  const Outcome outcome = parts_->save(draft, blocks, saved, go_on);
  parts_->stats.saves[outcome].add();
  parts_->count();
  parts_->compact_if_due();
  return outcome;
}

Outcome Keeper::pin(const PageId& id, bool pinned, Page& page) {
  const std::lock_guard lock(parts_->changing);
  const Outcome outcome = parts_->change(
      id,
      [pinned](Entry& entry) {
        entry.page.pinned = pinned;
        return Outcome::done;
      },
      false, page);
  parts_->count();
  parts_->compact_if_due();
  return outcome;
}

Outcome Keeper::rename(const PageId& id, const std::string& to, Page& page) {
  FERMATA_CHECK(valid_name(to), "names are checked at the edge");
  const std::lock_guard lock(parts_->changing);
  const Outcome outcome = parts_->change(
      id,
      [&](Entry& entry) {
        const std::optional<Page> other = find(entry.page.owner, to);
        if (other && other->id != id) return Outcome::taken;
        entry.page.name = to;
        return Outcome::done;
      },
      false, page);
  parts_->count();
  parts_->compact_if_due();
  return outcome;
}

Outcome Keeper::fork(const PageId& id, const std::string& to, Page& page) {
  FERMATA_CHECK(valid_name(to), "names are checked at the edge");
  const std::lock_guard lock(parts_->changing);
  const Outcome outcome = parts_->change(
      id,
      [&](Entry& entry) {
        if (find(entry.page.owner, to)) return Outcome::taken;
        entry.page.name = to;
        entry.page.pinned = false;
        entry.page.reason = Reason::client_request;
        entry.page.created = entry.page.last_used = parts_->now();
        return Outcome::done;
      },
      true, page);
  parts_->count();
  parts_->compact_if_due();
  return outcome;
}

}  // namespace fermata::store
