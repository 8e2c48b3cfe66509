// Pages on disk, for a thread that must never wait: it hands work in, workers do the I/O, and it
// reaps what is done when it likes.
//
//   scheduler ── save, load, pin, ... ──► bounded queues ──► writer, reader ──► folder
//       ▲                                                         │
//       └──────────────── reap() ◄── completions ◄────────────────┘ (and wake())
//
// Of two operations on one page those that write (save, erase, pin, rename, fork) happen in the
// order they were handed in; a load may overtake them and be overtaken.
#pragma once

#include "base/byte_buffer.h"
#include "base/types.h"
#include "store/keeper.h"
#include "store/outcome.h"
#include "store/page.h"
#include "store/stats.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::store {

using Ticket = Id<struct StoreTicketTag, std::uint64_t>;  // The caller's own number.

enum class Operation : std::uint8_t { save, load, read_part, erase, drop, pin, rename, fork, list };

enum class Submit : std::uint8_t {
  accepted,  // Exactly one completion will carry the ticket, whatever happens.
  busy,      // Too many operations or bytes are under way. Nothing happened, nothing comes.
  stopping,  // close() was called. Nothing happened, nothing comes.
};

// How an operation ended. save: done, full, refused_rate, failed, stopping. load: done, missing,
// damaged, foreign, failed, stopping. erase: done, missing, failed, stopping. pin: as erase, and
// full. drop: as erase. rename and fork: as pin, and taken, damaged. list: done, stopping.
// read_part: as load.
struct Completion {
  Ticket ticket;
  Operation operation = Operation::save;
  Outcome outcome = Outcome::done;
  Page page;                       // Where it is done and is about one page: as it is now.
  std::vector<TokenId> tokens;     // load
  std::vector<std::byte> extra;    // load
  std::vector<ByteBuffer> blocks;  // load: the first blocks, exactly as saved; read_part: the one.
  std::vector<BlockBytes> given;   // save: what was handed in, to be let go on this thread.
  std::vector<Page> pages;         // list
  Micros took;                     // On the worker.
};

struct StoreOptions {
  KeeperOptions keeper;
  std::size_t in_flight_max = 256;  // Operations not reaped.
  // Of saves not reaped; one that is alone may be larger.
  Bytes bytes_in_flight_max{std::int64_t{512} << 20};
  // After a completion was queued; on a worker's thread. Must not block.
  std::function<void()> wake;
};

// What close() did with the saves that were waiting.
struct CloseReport {
  std::uint64_t saved = 0, not_saved = 0;
  Bytes bytes_saved, bytes_not_saved;
};

// Methods are thread-safe unless said; none but open() and close() waits for a disk. `find` takes a
// lock that is never held during I/O.
class Store {
 public:
  // Opens or makes the folder, takes its lock, reads its journal. The error is one line: what, why,
  // mend.
  static Result<std::unique_ptr<Store>, std::string> open(StoreOptions options);
  ~Store();  // As close(0), where that was not called.
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // The longest stored prefix of the tokens; ties go to what was stored last. A microsecond for
  // each block that is found. It may be gone when it is loaded.
  std::optional<Match> find(const Owner& owner, const Fingerprint& fingerprint, Kind kind,
                            std::span<const TokenId> tokens) const;
  // The owner's page of that name, whatever its fingerprint.
  std::optional<Page> find(const Owner& owner, std::string_view name) const;
  std::optional<Page> find(const PageId& id) const;

  // Keeps a page from being evicted, once for each call. False: there is no such page.
  [[nodiscard]] bool hold(const PageId& id);
  void let_go(const PageId& id);

  // One element of `blocks` for each of block_count(draft.kind, its tokens). Each is read by the
  // writer until the ticket is reaped. Blocks that are stored already are not written again.
  // REQUIRES: the draft is within its limits; draft.name is empty or valid_name().
  [[nodiscard]] Submit save(Ticket ticket, Draft draft, std::vector<BlockBytes> blocks);
  // The first `blocks` blocks. The page is not evicted meanwhile. `buffers` are filled first, then
  // new ones: memory that was touched before is filled faster. Never answers a page of another
  // fingerprint.
  [[nodiscard]] Submit load(Ticket ticket, const PageId& id, const Fingerprint& fingerprint,
                            std::size_t blocks, std::vector<ByteBuffer> buffers = {});
  // See Keeper::read_part. The page is not evicted meanwhile.
  [[nodiscard]] Submit read_part(Ticket ticket, const PageId& id, std::size_t part);
  [[nodiscard]] Submit erase(Ticket ticket, const PageId& id);
  // See Keeper::drop.
  [[nodiscard]] Submit drop(Ticket ticket, const PageId& id);
  [[nodiscard]] Submit pin(Ticket ticket, const PageId& id, bool pinned);
  // REQUIRES: valid_name(to). fork: a new page of the same blocks, not pinned.
  [[nodiscard]] Submit rename(Ticket ticket, const PageId& id, std::string to);
  [[nodiscard]] Submit fork(Ticket ticket, const PageId& id, std::string to);
  // Pages of one owner (none: of all) whose name begins with `prefix`, the last used first.
  [[nodiscard]] Submit list(Ticket ticket, std::optional<Owner> owner, std::string prefix = {});

  // Moves what is done to the end of `out`. Never waits. One thread at a time.
  void reap(std::vector<Completion>& out);

  // Takes nothing more in, goes on with what waits for at most so long (and the one block that is
  // being written), then answers `stopping` to the rest. Everything is to be reaped afterwards.
  CloseReport close(Micros within);

  std::size_t in_flight() const;  // Accepted and not reaped.
  const StoreStats& stats() const;
  const TierStats& disk() const;
  const OpenReport& opened() const;  // What was found in the folder.

 private:
  struct Parts;
  explicit Store(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fermata::store
