// The pool's way to the store: conversations that outlive it and the process. Hands saves and loads
// to the store's workers and takes what comes back; nothing here waits for a disk.
#pragma once

#include "core/request.h"
#include "kv/pool.h"
#include "store/store.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace fermata::kv {

struct ArchiveOptions {
  store::Store* store = nullptr;  // None: nothing outlives the pool. Outlives the scheduler.
  store::Fingerprint fingerprint{};
};

enum class SaveAt : std::uint8_t {
  turn_end,  // May wait.
  eviction,
  shutdown,
};

// What a load brought, for the request that waits for it.
struct Arrival {
  RequestId id;
  bool found = false;  // On the shelf now.
};

// The scheduler thread's own. Lives shorter than its pool.
class Archive {
 public:
  // Prefixes this much longer than what is at hand are worth a load, where nobody asks by name.
  static constexpr Tokens worth_loading{64};

  Archive(const ArchiveOptions& options, Pool& pool, bool snapshots)
      : options_(options), pool_(pool), kind_(kind_of(snapshots)) {}
  store::Kind kind() const { return kind_; }

  bool is_on() const { return options_.store != nullptr; }

  // Whether a longer beginning of the request's prompt than `at_hand` is on its way now; its
  // arrival comes by reap().
  bool fetch(const Request& request, Tokens at_hand);
  // Saves what an idle seat holds, under the name of its conversation if it goes on from what is
  // there by that name, or nothing is; `price_seconds` is what computing it again would take.
  // False: try again later, too much is under way.
  bool save(Seat seat, double price_seconds, SaveAt at);
  // Saves a conversation under a name that somebody gives it. The completion of what is accepted is
  // one of `others` of reap().
  enum class SaveAs : std::uint8_t {
    accepted,
    stored,  // It is there already.
    taken,   // Another conversation has that name.
    busy,
    stopping,
  };
  SaveAs save_as(const std::string& name, Image image, double price_seconds, store::Ticket& ticket);
  // The pool's cells are of another kind from now on: what is on its way was of the old one.
  void change_fingerprint(const store::Fingerprint& fingerprint, bool snapshots);
  // Takes what the workers have done; what others had asked for is added to `others`.
  void reap(std::vector<Arrival>& arrived, std::vector<store::Completion>& others);

 private:
  using Ticket = store::Ticket;

  static store::Kind kind_of(bool snapshots) {
    return snapshots ? store::Kind::snapshot : store::Kind::blocks;
  }

  // Bytes that the writer reads.
  struct Saving {
    Image image;
    std::string name;
    bool is_asked = false;  // By somebody who waits for it.
  };

  store::Draft draft_of(const Image& image, double price_seconds, store::Reason reason) const;
  store::Submit hand_in(Ticket ticket, Image image, store::Draft draft, bool is_asked);
  const Saving* last_saving(const store::Draft& draft, const std::string& name) const;
  std::optional<store::Page> page_to_replace(const store::Draft& draft, const std::string& name,
                                             bool& is_free) const;
  bool is_stored(store::Draft& draft, const std::string& conversation) const;
  bool shelve(store::Completion& completion);

  ArchiveOptions options_;
  Pool& pool_;
  store::Kind kind_;
  std::uint64_t next_ticket_ = 1;
  bool is_full_ = false;  // The store took no more; until something comes back.
  std::unordered_map<Ticket, Saving> saving_;
  std::unordered_map<Ticket, RequestId> loading_;
  std::vector<Arrival> given_up_;               // Loads of the old kind.
  std::vector<store::Completion> completions_;  // Reused.
};

}  // namespace fermata::kv
