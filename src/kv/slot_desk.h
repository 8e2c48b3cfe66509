// What operators do with the conversations of slots: files as llama-server has them, pages by name.
// Bytes are taken and put between two steps; workers move them to and from the disk.
#pragma once

#include "base/clock.h"
#include "core/slots.h"
#include "engine/engine.h"
#include "kv/archive.h"
#include "kv/pool.h"
#include "kv/slot_files.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fermata::kv {

struct SlotDeskOptions {
  SlotFiles* files = nullptr;  // None: no files. Outlives the desk.
  ArchiveOptions archive;
  std::function<void(Seat)> evict;      // An idle seat, as for any request.
  std::function<bool()> has_engine;     // Else what needs one waits for it.
  std::function<double(Tokens)> price;  // Seconds of prefill.
};

// The scheduler thread's own. Lives shorter than its pool and archive.
class SlotDesk {
 public:
  static constexpr std::size_t deferred_max = 64;

  SlotDesk(SlotDeskOptions options, engine::Engine& engine, Pool& pool, Archive& archive,
           const Clock& clock)
      : options_(std::move(options)),
        engine_(engine),
        pool_(pool),
        archive_(archive),
        clock_(clock) {}

  // Exactly one answer comes. REQUIRES: there is what the action needs: files, or a store.
  void carry_out(SlotCommand command);
  // Somebody waits until there is an engine.
  bool waits_for_engine() const { return !put_off_.empty(); }
  // Those are answered that there is none.
  void give_up_waiting();
  // Something is under way, or waits.
  bool is_busy() const {
    return !in_files_.empty() || !in_store_.empty() || !deferred_.empty() || waits_for_engine();
  }
  // One of the store's completions. False: it is not of this desk.
  bool take(store::Completion& completion);
  // Takes what the files' worker has done, and does what waited for a seat to be idle. Whether
  // anything was done.
  bool settle();
  void change_fingerprint(const store::Fingerprint& fingerprint) {
    options_.archive.fingerprint = fingerprint;
  }
  // Those that wait are answered `stopping`.
  void stop();

 private:
  struct Pending {
    SlotCommand command;
    SlotAnswer answer;
    std::vector<std::byte> file;  // Of a restore, once it is read.
  };

  bool exists(Seat seat) const { return seat.value < pool_.seats(); }
  bool is_idle(Seat seat) const { return !exists(seat) || pool_.use(seat) != SeatUse::busy; }
  bool holds(const SlotCommand& command) const;
  void give(const SlotCommand& command, SlotAnswer answer) const;
  void refuse(const SlotCommand& command, SlotOutcome outcome) const;
  void save(SlotCommand command);
  void read(SlotCommand command);
  void page_out(SlotCommand command);
  void page_in(SlotCommand command);
  void paged_in(SlotCommand& command, store::Completion& completion);
  void take_file(SlotFileDone& done);
  void defer(Pending pending);
  void finish(Pending& pending);
  void restore(Pending& pending);
  bool make_cells(Seat seat, Tokens cells);

  SlotDeskOptions options_;
  engine::Engine& engine_;
  Pool& pool_;
  Archive& archive_;
  const Clock& clock_;
  std::uint64_t next_ = 1;
  std::unordered_map<SlotTicket, Pending> in_files_;
  std::unordered_map<store::Ticket, Pending> in_store_;
  std::vector<Pending> deferred_;     // Until their seat is idle.
  std::vector<SlotCommand> put_off_;  // Until there is an engine.
  std::vector<SlotFileDone> done_;
};

}  // namespace fermata::kv
