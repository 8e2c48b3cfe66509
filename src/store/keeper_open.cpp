// Opening a folder: its lock, its journal or, where that is damaged, its manifests.
#include "base/log.h"
#include "store/disk_tier.h"
#include "store/keeper_parts.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fermata::store {
namespace {

constexpr const char* lock_name = "lock";
constexpr const char* block_folder_name = "blocks";
constexpr const char* page_folder_name = "pages";
constexpr const char* quarantine_name = "quarantine";

bool is_ours(const std::string& name) {
  return name == "journal" || name == lock_name || name == block_folder_name ||
         name == page_folder_name || name == quarantine_name || name == "journal.part" ||
         name == "lost+found";  // Of a file system of its own.
}

}  // namespace

std::string Keeper::Parts::describe(int error, std::string_view what) const {
  std::string text = "pages in '" + options.folder + "': " + std::string(what) + ": ";
  switch (error) {
    case ELOOP:
    case ENOTDIR:
      return text + "a symlink or no folder; name the folder itself";
    case ENOENT:
      return text + "there is no such folder; make it, or its parent";
    case EACCES:
    case EPERM:
      return text + "no permission; give this user the folder, or name another one";
    case EROFS:
      return text + "read-only; name a folder that can be written";
    case ENOSPC:
    case EDQUOT:
      return text + "the disk is full; make room, or name a folder elsewhere";
    default:
      return text + std::strerror(error) + "; mend it, or name another folder";
  }
}

std::string Keeper::Parts::open_folders() {
  const bool make = !options.read_only;
  int error = Folder::open(options.folder, make, options.gate, root);
  if (error != 0) return describe(error, "cannot open it");
  std::vector<std::string> names;
  std::uint64_t size = 0;
  if (root.size_of(lock_name, size) == ENOENT) {
    error = root.names(names);
    if (error != 0) return describe(error, "cannot read it");
    if (!std::all_of(names.begin(), names.end(), is_ours)) {
      return "pages in '" + options.folder +
             "': the folder has other files; name an empty folder or a new one";
    }
  }
  error = root.lock(lock_name, options.read_only, lock);
  if (error == EWOULDBLOCK) {
    return "pages in '" + options.folder +
           "': another process uses the folder; stop it, or name another folder";
  }
  if (error != 0 && !(options.read_only && error == ENOENT)) return describe(error, "its lock");
  const std::pair<const char*, Folder*> inside[] = {{block_folder_name, &block_folder},
                                                    {page_folder_name, &page_folder},
                                                    {quarantine_name, &quarantine}};
  for (const auto& [name, folder] : inside) {
    error = root.open_inside(name, make, *folder);
    if (error == ENOENT && folder == &quarantine) continue;
    if (error != 0) return describe(error, std::string("its folder ") + name);
  }
  return {};
}

void Keeper::Parts::replay(Record&& record) {
  std::vector<BlockRef> orphans;
  switch (record.type) {
    case RecordType::put: {
      const Page& page = record.entry.page;
      sequence = std::max(sequence, record.entry.sequence);
      catalog.erase(page.id, orphans);
      if (!page.name.empty()) {
        const Entry* before = catalog.find(page.owner, page.name);
        if (before != nullptr) catalog.erase(PageId(before->page.id), orphans);
      }
      catalog.insert(std::move(record.entry));
      return;
    }
    case RecordType::erase:
      catalog.erase(record.id, orphans);
      return;
    case RecordType::touch:
      catalog.touch(record.id, record.last_used);
      return;
    case RecordType::closed:
    case RecordType::opened:
      return;
  }
}

void Keeper::Parts::rebuild() {
  catalog = Catalog();
  report.rebuilt = true;
  std::vector<std::string> names;
  page_folder.names(names);
  std::vector<Entry> entries;
  for (const std::string& name : names) {
    PageId id;
    if (!from_hex(name, id.bytes)) continue;
    Manifest manifest;
    if (read_manifest(id, manifest) != Outcome::done) continue;
    const auto there = [&](const BlockRef& block) {
      std::uint64_t size = 0;
      return block_folder.size_of(to_hex(block.id), size) == 0 &&
             size == static_cast<std::uint64_t>(file_bytes(block).value);
    };
    const std::vector<BlockRef>& blocks = manifest.entry.blocks;
    if (std::all_of(blocks.begin(), blocks.end(), there)) {
      entries.push_back(std::move(manifest.entry));
    }
  }
  // The last page of a name is the one that counts.
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.sequence < b.sequence; });
  for (Entry& entry : entries) {
    Record record;
    record.entry = std::move(entry);
    replay(std::move(record));
  }
}

std::string Keeper::Parts::read_journal() {
  using State = JournalRead::State;
  const JournalRead read = journal.read([this](Record&& record) { replay(std::move(record)); });
  catalog.take_touched();
  switch (read.state) {
    case State::foreign:
      return "pages in '" + options.folder +
             "': written by another version of this program; name another folder, or remove it";
    case State::failed:
      return describe(read.error, "its journal");
    case State::none:
    case State::damaged:
      rebuild();
      break;
    case State::good:
      report.journal_cut = Bytes(static_cast<std::int64_t>(read.torn));
      break;
  }
  report.unclean =
      report.rebuilt ? catalog.pages() > 0 || read.state == State::damaged : !read.clean;
  if (read.state == State::damaged) {
    log_warn("pages: the journal was damaged; {} pages were found by their manifests",
             catalog.pages());
  }
  if (read.torn > 0 && read.state == State::good) {
    log_warn("pages: {} bytes of an unfinished record were cut from the journal", read.torn);
  }
  return options.read_only ? std::string() : start_journal(read);
}

std::string Keeper::Parts::start_journal(const JournalRead& read) {
  int error = 0;
  if (report.rebuilt) {
    if (read.state == JournalRead::State::damaged) aside(root, "journal", Outcome::damaged);
    const Records records = all_records();
    error = journal.rewrite(records.bytes, records.count);
  } else {
    error = journal.resume(read);
  }
  if (error != 0) return describe(error, "its journal");
  compact_if_due();
  Records opened;
  opened.mark(RecordType::opened);
  error = journal.append(opened.bytes, opened.count);
  return error == 0 ? std::string() : describe(error, "its journal");
}

std::string Keeper::Parts::open() {
  std::string trouble = open_folders();
  if (!trouble.empty()) return trouble;
  auto disk = std::make_unique<DiskTier>(
      clock, block_folder,
      [this](const std::string& name, Outcome why) { aside(block_folder, name, why); });
  tier = std::move(disk);
  if (options.wrap_tier) tier = options.wrap_tier(std::move(tier));
  trouble = read_journal();
  if (!trouble.empty()) return trouble;
  expire();
  trim();
  count();
  report.pages = catalog.pages();
  report.blocks = catalog.blocks();
  report.bytes = catalog.bytes();
  report.quarantined = stats.quarantined.value();
  return {};
}

// Budgets may be smaller than they were.
void Keeper::Parts::trim() {
  if (!writable()) return;
  for (;;) {
    const bool bytes = options.bytes_max && catalog.bytes() > *options.bytes_max;
    if (!bytes && catalog.pages() <= options.pages_max) return;
    const std::optional<PageId> victim = catalog.cheapest(now(), {});
    if (!victim || evict({*victim}, bytes ? Eviction::bytes : Eviction::count) != Outcome::done) {
      return;
    }
  }
}

}  // namespace fermata::store
