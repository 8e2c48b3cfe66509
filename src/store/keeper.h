// The folder of pages, with its index and its budgets, for callers that may wait: the store's
// workers, the `pages` subcommand, tests. docs/store-format.md tells what lies in the folder.
#pragma once

#include "base/byte_buffer.h"
#include "base/clock.h"
#include "base/result.h"
#include "store/files.h"
#include "store/outcome.h"
#include "store/page.h"
#include "store/stats.h"
#include "store/tier.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::store {

// Bytes of one block that others own: alive until whoever was given them says so. `keep`, if set,
// goes with this object.
struct BlockBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
};

struct KeeperOptions {
  std::string folder;
  std::optional<Bytes> bytes_max;           // Of blocks and manifests; none: no limit.
  std::size_t pages_max = 100'000;          // > 0
  std::optional<std::int64_t> ttl_seconds;  // Since the last use; none: for ever.
  std::optional<Bytes> bytes_per_hour_max;  // Written; counted anew at each start.
  bool read_only = false;                   // Nothing is mended or written; saves fail.

  // The world, for tests.
  std::function<std::int64_t()> now;  // Seconds since 1970; none: the machine's.
  std::shared_ptr<FileGate> gate;     // Asked before each change of a file.
  std::function<std::unique_ptr<Tier>(std::unique_ptr<Tier>)> wrap_tier;
};

// What opening found.
struct OpenReport {
  std::size_t pages = 0, blocks = 0;
  Bytes bytes;
  Bytes journal_cut;     // Of a record that was being written when the process ended.
  bool rebuilt = false;  // The journal was damaged: the index is from the manifests.
  bool unclean = false;  // The last process did not close the folder.
  std::size_t quarantined = 0;
};

// One trouble that verify() or gc() met.
struct Finding {
  std::string file;  // From the folder on, or a page's id.
  Outcome outcome;   // missing, damaged, foreign, failed.
  std::string what;
};

struct GcReport {
  std::size_t removed = 0, quarantined = 0, expired = 0;
  Bytes bytes_removed;
  std::vector<Finding> findings;
};

struct Loaded {
  Page page;
  std::vector<TokenId> tokens;
  std::vector<std::byte> extra;
  std::vector<ByteBuffer> blocks;
};

// Thread-safe. Changes wait for each other, loads for nobody (but to drop what they find damaged);
// find, list, hold and let_go never wait for a disk. Outcomes are those that store.h lists.
class Keeper {
 public:
  // The error is one line: what, why, mend.
  static Result<std::unique_ptr<Keeper>, std::string> open(KeeperOptions options,
                                                           const Clock& clock);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  std::optional<Match> find(const Owner& owner, const Fingerprint& fingerprint, Kind kind,
                            std::span<const TokenId> tokens) const;
  std::optional<Page> find(const Owner& owner, std::string_view name) const;
  std::optional<Page> find(const PageId& id) const;
  std::vector<Page> list(const std::optional<Owner>& owner, std::string_view prefix) const;
  // Keeps it from being evicted, once for each call. False: no such page.
  bool hold(const PageId& id);
  void let_go(const PageId& id);

  // `go_on` is asked before each block; false: stopping. What was there before is whole whatever
  // the outcome. See Store::save.
  Outcome save(const Draft& draft, std::span<const BlockBytes> blocks, Page& saved,
               const std::function<bool()>& go_on = {});
  // `into.blocks` may hold buffers to be used first.
  Outcome load(const PageId& id, const Fingerprint& fingerprint, std::size_t blocks, Loaded& into);
  // A part of the page as a parcel: 0 its beginning, then one for each block. done, missing,
  // damaged, foreign, failed.
  Outcome read_part(const PageId& id, std::size_t part, ByteBuffer& into, Page& page);
  Outcome erase(const PageId& id);
  // A page of a parked request that nobody has made his own since: it has neither name nor pin, and
  // nobody holds it. Else it stays, which is done as well.
  Outcome drop(const PageId& id);
  Outcome pin(const PageId& id, bool pinned, Page& page);
  Outcome rename(const PageId& id, const std::string& to, Page& page);
  Outcome fork(const PageId& id, const std::string& to, Page& page);

  // Drops pages that are too old. How many.
  std::size_t expire();
  // And the same; removes files that nothing refers to; moves those that are not
  // ours to quarantine/. The only scan of the folder beside verify() and a rebuild.
  GcReport gc();
  // Reads everything. `seen` is called for each page. REQUIRES: read_only.
  std::vector<Finding> verify(const std::function<void(const Page&)>& seen = {});
  // Makes everything durable and the next opening clean. Later changes fail.
  void close();

  const StoreStats& stats() const;
  const TierStats& disk() const;
  const OpenReport& opened() const;

 private:
  struct Parts;
  explicit Keeper(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fermata::store
