// What needs to look at every file.
#include "base/check.h"
#include "store/keeper_parts.h"

#include <cerrno>
#include <unordered_set>

namespace fermata::store {

void Keeper::Parts::collect(const Folder& folder, const std::string& name, const char* where,
                            bool ours, GcReport& gc) {
  std::uint64_t size = 0;
  const int kind = folder.size_of(name, size);
  if (kind == 0 && ours) {
    if (folder.remove(name) != 0) return;
    ++gc.removed;
    gc.bytes_removed += Bytes(static_cast<std::int64_t>(size));
    stats.collected.add();
    return;
  }
  gc.findings.push_back({std::string(where) + "/" + name, Outcome::foreign, "not a file of ours"});
  aside(folder, name, Outcome::foreign);
  ++gc.quarantined;
}

void Keeper::Parts::collect_blocks(GcReport& gc) {
  std::vector<std::string> names;
  block_folder.names(names);
  std::unordered_set<ContentId> present;
  for (const std::string& name : names) {
    ContentId id;
    const bool hex = from_hex(name, id.bytes);
    std::uint64_t size = 0;
    if (hex && block_folder.size_of(name, size) == 0) {
      const std::shared_lock reading(catalog_lock);
      if (catalog.has_block(id)) {
        present.insert(id);
        continue;
      }
    }
    collect(block_folder, name, "blocks", hex || is_temporary(name), gc);
  }
  std::vector<PageId> lost;
  {
    const std::shared_lock reading(catalog_lock);
    catalog.for_each([&](const Entry& entry) {
      for (const BlockRef& block : entry.blocks) {
        if (present.contains(block.id)) continue;
        lost.push_back(entry.page.id);
        gc.findings.push_back(
            {to_hex(entry.page.id), Outcome::missing, "block " + to_hex(block.id) + " is gone"});
        return;
      }
    });
  }
  evict(lost, Eviction::damaged);
}

void Keeper::Parts::collect_pages(GcReport& gc) {
  std::vector<std::string> names;
  page_folder.names(names);
  std::unordered_set<PageId> present;
  for (const std::string& name : names) {
    PageId id;
    const bool hex = from_hex(name, id.bytes);
    std::uint64_t size = 0;
    if (hex && page_folder.size_of(name, size) == 0) {
      const std::shared_lock reading(catalog_lock);
      if (catalog.find(id) != nullptr) {
        present.insert(id);
        continue;
      }
    }
    collect(page_folder, name, "pages", hex || is_temporary(name), gc);
  }
  std::vector<PageId> lost;
  {
    const std::shared_lock reading(catalog_lock);
    catalog.for_each([&](const Entry& entry) {
      if (present.contains(entry.page.id)) return;
      lost.push_back(entry.page.id);
      gc.findings.push_back({to_hex(entry.page.id), Outcome::missing, "its manifest is gone"});
    });
  }
  evict(lost, Eviction::damaged);
}

GcReport Keeper::gc() {
  const std::lock_guard lock(parts_->changing);
  GcReport gc;
  if (!parts_->writable()) return gc;
  gc.expired = parts_->expire();
  parts_->collect_pages(gc);
  parts_->collect_blocks(gc);
  parts_->count();
  parts_->compact_if_due();
  return gc;
}

std::vector<Finding> Keeper::verify(const std::function<void(const Page&)>& seen) {
  FERMATA_CHECK(parts_->options.read_only, "verify changes nothing");
  std::vector<Finding> findings;
  for (const Page& page : list(std::nullopt, {})) {
    if (seen) seen(page);
    Entry entry;
    {
      const std::shared_lock lock(parts_->catalog_lock);
      entry = *parts_->catalog.find(page.id);
    }
    Manifest manifest;
    const Outcome outcome = parts_->read_manifest(page.id, manifest);
    if (outcome != Outcome::done || manifest.entry.blocks != entry.blocks) {
      const bool other = outcome == Outcome::done;
      findings.push_back({"pages/" + to_hex(page.id), other ? Outcome::damaged : outcome,
                          other ? "not the page that the journal tells of" : "its manifest"});
    }
    ByteBuffer buffer;
    for (const BlockRef& block : entry.blocks) {
      const Outcome got = parts_->tier->get(block, page.fingerprint, buffer);
      if (got == Outcome::done) continue;
      findings.push_back({"blocks/" + to_hex(block.id), got, "a block of " + to_hex(page.id)});
    }
  }
  return findings;
}

}  // namespace fermata::store
