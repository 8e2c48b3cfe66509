// What clients ask of saved conversations by name. Answers at once what the index knows, hands the
// rest to the store's workers and answers when they have done it.
#pragma once

#include "core/pages.h"
#include "kv/archive.h"
#include "kv/pool.h"
#include "store/parcel.h"
#include "store/store.h"

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

namespace fermata::kv {

// What is asked to be stored, checked.
struct PageImport {
  PageCommand command;
  std::shared_ptr<const std::string> body;
  store::Parcel parcel;  // Its blocks lie in the body.
};

// What pages of this server are, for any thread: bytes from outside are checked off the
// scheduler's.
class ImportGate {
 public:
  // The scheduler's thread.
  void change(const store::Fingerprint& fingerprint, store::Kind kind,
              std::shared_ptr<const engine::RangeCheck> check);
  // no_parcel, foreign, unsupported: nothing is left of the body. Takes about as long as copying
  // it would.
  Result<PageImport, PageOutcome> check(PageCommand command) const;

 private:
  mutable std::mutex mutex_;
  store::Fingerprint fingerprint_{};
  store::Kind kind_ = store::Kind::blocks;
  std::shared_ptr<const engine::RangeCheck> check_;
};

// The owner's page of that name, or with the name that a nameless one has.
std::optional<store::Page> find_page(const store::Store& store, const Owner& owner,
                                     const std::string& name);

// The scheduler thread's own. Lives shorter than its pool.
class PageDesk {
 public:
  PageDesk(const ArchiveOptions& options, Pool& pool, store::Kind kind,
           std::shared_ptr<const engine::RangeCheck> check);

  // Exactly one answer comes. REQUIRES: there is a store.
  void carry_out(PageCommand command);
  void carry_out(PageImport import);
  const ImportGate& gate() const { return gate_; }
  // One of the store's completions that is not the archive's.
  void take(store::Completion completion);
  void change_fingerprint(const store::Fingerprint& fingerprint, store::Kind kind,
                          std::shared_ptr<const engine::RangeCheck> check);
  // Those that wait are answered `stopping`: nobody reaps any more.
  void stop();

 private:
  using Ticket = store::Ticket;
  using BytesByKey = std::unordered_map<store::BlockKey, Bytes>;

  store::Submit hand_in(Ticket ticket, const PageCommand& command, const store::Page& page);
  void hand_in(PageCommand command, const store::Page& page);
  void wait_for(store::Submit handed_in, Ticket ticket, PageCommand command);
  void give_part(const PageCommand& command, store::Completion completion);
  bool erases_again(PageCommand& command, store::Outcome outcome);
  void forget(const store::Page& page, bool with_next_turn);
  BytesByKey ram_of(std::span<const store::Page> pages) const;
  PageInfo info(const store::Page& page, const BytesByKey& ram) const;
  void answer(const PageCommand& command, std::span<const store::Page> pages);

  ArchiveOptions options_;
  Pool& pool_;
  store::Kind kind_;
  std::uint64_t next_ticket_ = std::uint64_t{1} << 63;  // The archive counts from 1.
  std::unordered_map<Ticket, PageCommand> waiting_;
  ImportGate gate_;
};

}  // namespace fermata::kv
