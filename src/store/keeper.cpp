#include "store/keeper.h"

#include "base/log.h"
#include "store/disk_tier.h"
#include "store/keeper_parts.h"
#include "store/parcel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fermata::store {
namespace {

// Lie aside for the operator; more say nothing new and would fill the disk.
constexpr std::size_t aside_max = 64;
// A journal with more records than this for each page is written anew.
constexpr std::size_t records_per_page = 4;
constexpr std::size_t records_spare = 1000;
// Pages looked at under one lock, so that a search never waits for the whole list.
constexpr std::size_t batch = 64;

}  // namespace

void WriteRate::add(std::int64_t now, Bytes bytes) {
  last_hour(now);
  of_minute_[static_cast<std::size_t>(minute_ % minutes)] += bytes;
}

Bytes WriteRate::last_hour(std::int64_t now) {
  const std::int64_t minute = std::max<std::int64_t>(now / 60, minute_);
  for (std::int64_t m = std::max(minute_ + 1, minute - minutes + 1); m <= minute; ++m) {
    of_minute_[static_cast<std::size_t>(m % minutes)] = Bytes(0);
  }
  minute_ = minute;
  Bytes sum;
  for (const Bytes bytes : of_minute_) sum += bytes;
  return sum;
}

Keeper::Parts::Parts(KeeperOptions options_in, const Clock& clock_in)
    : options(std::move(options_in)), clock(clock_in) {}

PageId Keeper::Parts::new_id(const Page& page) {
  std::vector<std::byte> bytes(page.end.bytes.begin(), page.end.bytes.end());
  const std::uint64_t number = sequence;
  const std::int64_t created = page.created;
  const auto add = [&](const auto& value) {
    const auto raw_bytes = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), raw_bytes.begin(), raw_bytes.end());
  };
  const std::int64_t ticks = clock.now().value;
  add(number);
  add(created);
  add(ticks);
  PageId id;
  id.bytes = content_id(page.fingerprint, bytes).bytes;
  return id;
}

void Keeper::Parts::written(Bytes bytes) {
  stats.bytes_written.add(static_cast<std::uint64_t>(bytes.value));
  rate.add(now(), bytes);
}

Outcome Keeper::Parts::commit(Records records) {
  {
    const std::unique_lock lock(catalog_lock);
    for (const auto& [id, at] : catalog.take_touched()) records.touch(id, at);
  }
  if (records.count == 0) return Outcome::done;
  const int error = journal.append(records.bytes, records.count);
  if (error != 0) {
    log_warn("pages: the journal was not written: {}", std::strerror(error));
    return outcome_of(error) == Outcome::full ? Outcome::full : Outcome::failed;
  }
  written(Bytes(static_cast<std::int64_t>(records.bytes.size())));
  return Outcome::done;
}

Records Keeper::Parts::all_records() {
  std::vector<PageId> ids;
  {
    const std::shared_lock lock(catalog_lock);
    ids.reserve(catalog.pages());
    catalog.for_each([&](const Entry& entry) { ids.push_back(entry.page.id); });
  }
  Records out;
  for (std::size_t i = 0; i < ids.size(); i += batch) {
    const std::shared_lock lock(catalog_lock);
    for (std::size_t j = i; j < std::min(i + batch, ids.size()); ++j) {
      if (const Entry* entry = catalog.find(ids[j])) out.put(*entry);
    }
  }
  return out;
}

void Keeper::Parts::compact_if_due() {
  if (journal.records() <= catalog.pages() * records_per_page + records_spare) return;
  Records records = all_records();
  if (!closed) records.mark(RecordType::opened);
  const int error = journal.rewrite(records.bytes, records.count);
  if (error != 0) {
    log_warn("pages: the journal was not written anew: {}", std::strerror(error));
    return;
  }
  written(Bytes(static_cast<std::int64_t>(records.bytes.size())));
}

void Keeper::Parts::count() {
  const std::shared_lock lock(catalog_lock);
  stats.pages.set(static_cast<std::int64_t>(catalog.pages()));
  stats.pinned.set(static_cast<std::int64_t>(catalog.pinned()));
  stats.blocks.set(static_cast<std::int64_t>(catalog.blocks()));
  stats.bytes.set(catalog.bytes().value);
  tier->tell_held(catalog.block_bytes(), catalog.blocks());
}

void Keeper::Parts::leave(const PageId& id, Eviction why, Leaving& leaving) {
  if (catalog.find(id) == nullptr) return;
  catalog.erase(id, leaving.orphans);
  leaving.pages.push_back(id);
  stats.evicted[static_cast<std::size_t>(why)].add();
}

void Keeper::Parts::unlink(const Leaving& leaving) {
  for (const PageId& id : leaving.pages) {
    const int error = page_folder.remove(to_hex(id));
    if (error != 0 && error != ENOENT) {
      log_warn("pages: manifest {} was not removed: {}", to_hex(id), std::strerror(error));
    }
  }
  for (const BlockRef& block : leaving.orphans) tier->erase(block);
}

Outcome Keeper::Parts::evict(const std::vector<PageId>& pages, Eviction why) {
  if (pages.empty()) return Outcome::done;
  Records records;
  for (const PageId& id : pages) records.erase(id);
  const Outcome outcome = commit(records);
  if (outcome != Outcome::done && outcome != Outcome::full) return outcome;
  Leaving leaving;
  {
    const std::unique_lock lock(catalog_lock);
    for (const PageId& id : pages) leave(id, why, leaving);
  }
  unlink(leaving);
  // On a full disk the files go first, or nothing ever could. A journal that still tells of them
  // costs a miss after a restart.
  if (outcome == Outcome::full) static_cast<void>(commit(std::move(records)));
  return Outcome::done;
}

void Keeper::Parts::aside(const Folder& from, const std::string& name, Outcome why) {
  if (options.read_only) return;
  const std::lock_guard lock_aside(aside_lock);
  std::vector<std::string> lying;
  if (!lying_aside) {
    quarantine.names(lying);
    lying_aside = lying.size();
  }
  const std::string_view reason = name_of(why);
  stats.quarantined.add();
  if (*lying_aside >= aside_max) {
    // One of ours is of no use to anybody. What is not ours stays where it is.
    if (why == Outcome::damaged) from.remove(name);
    log_warn("pages: {} is {} and was not loaded; quarantine/ is full", name, reason);
    return;
  }
  const std::string seed = name + std::to_string(clock.now().value) + std::to_string(*lying_aside);
  const std::string new_name = to_hex(content_id({}, std::as_bytes(std::span(seed))));
  const int error = from.move(name, quarantine, new_name);
  if (error == ENOENT) return;
  if (error != 0) {
    log_warn("pages: {} is {} and was not loaded; it could not be moved: {}", name, reason,
             std::strerror(error));
    return;
  }
  ++*lying_aside;
  log_warn("pages: {} is {} and was not loaded; it is quarantine/{} now", name, reason, new_name);
}

Outcome Keeper::Parts::read_manifest(const PageId& id, Manifest& out) {
  const std::string name = to_hex(id);
  std::vector<std::byte> bytes;
  const int error = page_folder.read_file(name, manifest_bytes_max, bytes);
  Outcome outcome = error == EFBIG ? Outcome::damaged : outcome_of(error);
  if (outcome == Outcome::full) outcome = Outcome::failed;
  if (outcome == Outcome::failed) {
    log_warn("pages: manifest {} cannot be read: {}", name, std::strerror(error));
  }
  if (outcome == Outcome::done) {
    Decoded<Manifest> decoded = decode_manifest(bytes);
    const bool right = decoded.value && decoded.value->entry.page.id == id;
    if (right) out = std::move(*decoded.value);
    if (!right) outcome = decoded.fault == Fault::foreign ? Outcome::foreign : Outcome::damaged;
  }
  if (outcome == Outcome::damaged || outcome == Outcome::foreign) aside(page_folder, name, outcome);
  return outcome;
}

Outcome Keeper::Parts::load(const Entry& entry, std::size_t blocks, Loaded& into) {
  Manifest manifest;
  Outcome outcome = read_manifest(entry.page.id, manifest);
  if (outcome != Outcome::done) return outcome;
  if (manifest.entry.chain != entry.chain || manifest.entry.blocks != entry.blocks) {
    aside(page_folder, to_hex(entry.page.id), Outcome::damaged);
    return Outcome::damaged;
  }
  into.blocks.resize(std::min(blocks, entry.blocks.size()));
  for (std::size_t i = 0; i < into.blocks.size(); ++i) {
    const BlockRef& block = entry.blocks[i];
    outcome = tier->get(block, entry.page.fingerprint, into.blocks[i]);
    if (outcome == Outcome::failed) return outcome;
    if (outcome != Outcome::done) {
      const std::unique_lock lock(catalog_lock);
      catalog.lose_block(block.id);
      return outcome;
    }
  }
  into.page = entry.page;
  into.tokens = std::move(manifest.tokens);
  into.extra = std::move(manifest.extra);
  return Outcome::done;
}

Outcome Keeper::Parts::read_part(const Entry& entry, std::size_t part, ByteBuffer& into) {
  if (part == 0) {
    Manifest manifest;
    const Outcome outcome = read_manifest(entry.page.id, manifest);
    if (outcome != Outcome::done) return outcome;
    const std::vector<std::byte> bytes = parcel_beginning(std::move(manifest));
    if (!resize(into, bytes.size())) return Outcome::failed;
    std::ranges::copy(bytes, into.begin());
    return Outcome::done;
  }
  const BlockRef& block = entry.blocks[part - 1];
  return tier->get(block, entry.page.fingerprint, into);
}

void Keeper::Parts::drop_damaged(const PageId& id) {
  const std::lock_guard lock(changing);
  if (!writable()) return;
  {
    const std::shared_lock reading(catalog_lock);
    if (catalog.find(id) == nullptr) return;
  }
  evict({id}, Eviction::damaged);
  count();
}

std::size_t Keeper::Parts::expire() {
  if (!options.ttl_seconds || !writable()) return 0;
  std::vector<PageId> old;
  {
    const std::shared_lock lock(catalog_lock);
    old = catalog.unused_since(now() - *options.ttl_seconds);
  }
  if (evict(old, Eviction::age) != Outcome::done) return 0;
  count();
  return old.size();
}

Keeper::Keeper(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Keeper::~Keeper() { close(); }

Result<std::unique_ptr<Keeper>, std::string> Keeper::open(KeeperOptions options,
                                                          const Clock& clock) {
  auto parts = std::make_unique<Parts>(std::move(options), clock);
  std::string trouble = parts->open();
  if (!trouble.empty()) return Err{std::move(trouble)};
  return std::unique_ptr<Keeper>(new Keeper(std::move(parts)));
}

std::optional<Match> Keeper::find(const Owner& owner, const Fingerprint& fingerprint, Kind kind,
                                  std::span<const TokenId> tokens) const {
  const std::shared_lock lock(parts_->catalog_lock);
  std::optional<Match> match = parts_->catalog.match(owner, fingerprint, kind, tokens);
  parts_->stats.lookups.add();
  if (match) {
    parts_->stats.lookup_hits.add();
    parts_->stats.tokens_found.add(static_cast<std::uint64_t>(match->tokens.value));
  }
  return match;
}

std::optional<Page> Keeper::find(const Owner& owner, std::string_view name) const {
  const std::shared_lock lock(parts_->catalog_lock);
  const Entry* entry = parts_->catalog.find(owner, name);
  if (entry == nullptr) return std::nullopt;
  return entry->page;
}

std::optional<Page> Keeper::find(const PageId& id) const {
  const std::shared_lock lock(parts_->catalog_lock);
  const Entry* entry = parts_->catalog.find(id);
  if (entry == nullptr) return std::nullopt;
  return entry->page;
}

std::vector<Page> Keeper::list(const std::optional<Owner>& owner, std::string_view prefix) const {
  std::vector<PageId> ids;
  {
    const std::shared_lock lock(parts_->catalog_lock);
    parts_->catalog.for_each([&](const Entry& entry) {
      if (owner && entry.page.owner != *owner) return;
      if (std::string_view(entry.page.name).starts_with(prefix)) ids.push_back(entry.page.id);
    });
  }
  std::vector<Page> pages;
  for (std::size_t i = 0; i < ids.size(); i += batch) {
    const std::shared_lock lock(parts_->catalog_lock);
    for (std::size_t j = i; j < std::min(i + batch, ids.size()); ++j) {
      if (const Entry* entry = parts_->catalog.find(ids[j])) pages.push_back(entry->page);
    }
  }
  std::sort(pages.begin(), pages.end(), [](const Page& a, const Page& b) {
    return a.last_used != b.last_used ? a.last_used > b.last_used : a.id < b.id;
  });
  return pages;
}

bool Keeper::hold(const PageId& id) {
  const std::unique_lock lock(parts_->catalog_lock);
  return parts_->catalog.hold(id);
}

void Keeper::let_go(const PageId& id) {
  const std::unique_lock lock(parts_->catalog_lock);
  parts_->catalog.let_go(id);
}

Outcome Keeper::load(const PageId& id, const Fingerprint& fingerprint, std::size_t blocks,
                     Loaded& into) {
  Outcome outcome = Outcome::missing;
  Entry entry;
  {
    const std::unique_lock lock(parts_->catalog_lock);
    if (const Entry* found = parts_->catalog.find(id)) {
      const bool same = found->page.fingerprint == fingerprint;
      outcome = same ? Outcome::done : Outcome::foreign;
      entry = *found;
    }
    if (outcome == Outcome::done) parts_->catalog.hold(id);
  }
  if (outcome == Outcome::done) {
    outcome = parts_->load(entry, blocks, into);
    {
      const std::unique_lock lock(parts_->catalog_lock);
      parts_->catalog.let_go(id);
      if (outcome == Outcome::done) {
        into.page.last_used = parts_->now();
        parts_->catalog.touch(id, into.page.last_used);
      }
    }
    if (outcome != Outcome::done && outcome != Outcome::failed) parts_->drop_damaged(id);
  }
  if (outcome != Outcome::done) into.blocks.clear();
  parts_->stats.loads[outcome].add();
  return outcome;
}

Outcome Keeper::read_part(const PageId& id, std::size_t part, ByteBuffer& into, Page& page) {
  Entry entry;
  {
    const std::shared_lock lock(parts_->catalog_lock);
    const Entry* found = parts_->catalog.find(id);
    if (found == nullptr || part > found->blocks.size()) return Outcome::missing;
    entry = *found;
  }
  const Outcome outcome = parts_->read_part(entry, part, into);
  page = std::move(entry.page);
  if (outcome != Outcome::done && outcome != Outcome::failed) parts_->drop_damaged(id);
  return outcome;
}

Outcome Keeper::erase(const PageId& id) {
  const std::lock_guard lock(parts_->changing);
  if (!parts_->writable()) return Outcome::failed;
  if (!find(id)) return Outcome::missing;
  const Outcome outcome = parts_->evict({id}, Eviction::erased);
  parts_->count();
  parts_->compact_if_due();
  return outcome == Outcome::done ? outcome : Outcome::failed;
}

Outcome Keeper::drop(const PageId& id) {
  {
    const std::shared_lock lock(parts_->catalog_lock);
    const Entry* entry = parts_->catalog.find(id);
    if (entry == nullptr) return Outcome::missing;
    const Page& page = entry->page;
    if (page.reason != Reason::parked || !page.name.empty() || page.pinned ||
        parts_->catalog.is_held(id)) {
      return Outcome::done;
    }
  }
  return erase(id);
}

std::size_t Keeper::expire() {
  const std::lock_guard lock(parts_->changing);
  return parts_->expire();
}

void Keeper::close() {
  const std::lock_guard lock(parts_->changing);
  if (!parts_->writable()) return;
  // Touches before the mark: it is the last record of a folder that was closed.
  parts_->commit({});
  Records records;
  records.mark(RecordType::closed);
  parts_->commit(std::move(records));
  parts_->closed = true;
}

const StoreStats& Keeper::stats() const { return parts_->stats; }
const TierStats& Keeper::disk() const { return parts_->tier->stats(); }
const OpenReport& Keeper::opened() const { return parts_->report; }

}  // namespace fermata::store
