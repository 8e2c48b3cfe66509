// Inside of the keeper. Two locks: `changing` is held through every change of the folder, I/O
// included; `catalog_lock` guards the catalog for moments and is never held during I/O. Whoever
// takes both takes `changing` first.
#pragma once

#include "store/catalog.h"
#include "store/files.h"
#include "store/format.h"
#include "store/journal.h"
#include "store/keeper.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

namespace fermata::store {

// Bytes written within the last hour, to the minute. Under `changing`.
class WriteRate {
 public:
  void add(std::int64_t now, Bytes bytes);
  Bytes last_hour(std::int64_t now);

 private:
  static constexpr std::int64_t minutes = 60;
  std::array<Bytes, minutes> of_minute_{};
  std::int64_t minute_ = 0;  // The last one that was counted.
};

// Records for the journal, to be appended at once.
struct Records {
  std::vector<std::byte> bytes;
  std::size_t count = 0;

  void put(const Entry& entry) { append_put(bytes, entry), ++count; }
  void erase(const PageId& id) { append_erase(bytes, id), ++count; }
  void touch(const PageId& id, std::int64_t at) { append_touch(bytes, id, at), ++count; }
  void mark(RecordType type) { append_mark(bytes, type), ++count; }
};

// Pages that are leaving: out of the catalog, their files still there.
struct Leaving {
  std::vector<PageId> pages;
  std::vector<BlockRef> orphans;
};

struct Keeper::Parts {
  Parts(KeeperOptions options_in, const Clock& clock_in);

  // keeper_open.cpp
  std::string open();
  std::string open_folders();
  std::string read_journal();
  std::string start_journal(const JournalRead& read);
  void replay(Record&& record);
  void rebuild();
  void trim();
  std::string describe(int error, std::string_view what) const;

  // keeper_save.cpp
  Outcome save(const Draft& draft, std::span<const BlockBytes> given, Page& saved,
               const std::function<bool()>& go_on);
  Outcome make_entry(const Draft& draft, std::span<const BlockBytes> given, Entry& entry,
                     const std::function<bool()>& go_on);
  // done: the block is there, with these bytes. missing: it is to be written. failed: as read.
  Outcome find_block(const Entry& entry, const BlockRef& block, std::span<const std::byte> bytes);
  Outcome write_blocks(const Entry& entry, std::span<const BlockBytes> given,
                       std::vector<BlockRef>& written, const std::function<bool()>& go_on);
  Outcome refresh_same(const Draft& draft, const Entry& entry, Page& saved, bool& found);
  Bytes cost_of(const Entry& entry) const;
  Outcome make_room(const Entry& entry, const std::vector<PageId>& spared, std::size_t more);
  const Entry* beginning_of(const Draft& draft) const;
  std::vector<PageId> replaced_by(const Draft& draft) const;
  Outcome write_manifest(const Entry& entry, std::span<const TokenId> tokens,
                         std::span<const std::byte> extra);
  // What has to be known of a page to write it again in another form.
  Outcome read_page(const PageId& id, Manifest& out);
  Outcome change(const PageId& id, const std::function<Outcome(Entry&)>& edit, bool as_new,
                 Page& page);

  // keeper.cpp
  bool writable() const { return !options.read_only && !closed; }
  std::int64_t now() const { return options.now ? options.now() : wall_clock_seconds(); }
  PageId new_id(const Page& page);
  Outcome commit(Records records);
  void compact_if_due();
  Records all_records();
  // Under `catalog_lock`.
  void leave(const PageId& id, Eviction why, Leaving& leaving);
  // The journal says that they are gone.
  void unlink(const Leaving& leaving);
  Outcome evict(const std::vector<PageId>& pages, Eviction why);
  Outcome load(const Entry& entry, std::size_t blocks, Loaded& into);
  Outcome read_part(const Entry& entry, std::size_t part, ByteBuffer& into);
  Outcome read_manifest(const PageId& id, Manifest& out);
  void drop_damaged(const PageId& id);
  void aside(const Folder& from, const std::string& name, Outcome why);
  void count();
  void written(Bytes bytes);
  std::size_t expire();

  // keeper_scan.cpp
  void collect_blocks(GcReport& report);
  void collect_pages(GcReport& report);
  void collect(const Folder& folder, const std::string& name, const char* where, bool ours,
               GcReport& report);

  const KeeperOptions options;
  const Clock& clock;
  Folder root, block_folder, page_folder, quarantine;
  Fd lock;
  Journal journal{root};
  std::unique_ptr<Tier> tier;
  std::mutex changing;
  mutable std::shared_mutex catalog_lock;
  Catalog catalog;
  std::uint64_t sequence = 1;
  WriteRate rate;
  bool closed = false;
  std::mutex aside_lock;
  std::optional<std::size_t> lying_aside;
  mutable StoreStats stats;
  OpenReport report;
};

}  // namespace fermata::store
