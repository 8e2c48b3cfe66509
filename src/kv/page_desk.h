// What clients ask of saved conversations by name. Answers at once what the index knows, hands the
// rest to the store's workers and answers when they have done it.
#pragma once

#include "core/pages.h"
#include "kv/archive.h"
#include "kv/pool.h"
#include "store/store.h"

#include <optional>
#include <span>
#include <unordered_map>

namespace fermata::kv {

// The owner's page of that name, or with the name that a nameless one has.
std::optional<store::Page> find_page(const store::Store& store, const Owner& owner,
                                     const std::string& name);

// The scheduler thread's own. Lives shorter than its pool.
class PageDesk {
 public:
  PageDesk(const ArchiveOptions& options, Pool& pool, store::Kind kind)
      : options_(options), pool_(pool), kind_(kind) {}

  // Exactly one answer comes. REQUIRES: there is a store.
  void carry_out(PageCommand command);
  // One of the store's completions that is not the archive's.
  void take(store::Completion completion);
  void change_fingerprint(const store::Fingerprint& fingerprint, store::Kind kind) {
    options_.fingerprint = fingerprint;
    kind_ = kind;
  }
  // Those that wait are answered `stopping`: nobody reaps any more.
  void stop();

 private:
  using Ticket = store::Ticket;
  using BytesByKey = std::unordered_map<store::BlockKey, Bytes>;

  store::Submit hand_in(Ticket ticket, const PageCommand& command, const store::Page& page);
  void hand_in(PageCommand command, const store::Page& page);
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
};

}  // namespace fermata::kv
