// Parked sequences in the store: pages like any other, which are held while somebody waits for
// them. One that is of no use any more stays until a later one of its request is written, which
// shares its blocks, or the request ends.
#pragma once

#include "kv/archive.h"
#include "kv/spill.h"

#include <optional>
#include <unordered_map>
#include <vector>

namespace fermata::kv {

class DiskSpill final : public Spill {
 public:
  // REQUIRES: options.store, which outlives this.
  DiskSpill(const ArchiveOptions& options, store::Kind kind) : options_(options), kind_(kind) {}
  ~DiskSpill() override;
  DiskSpill(const DiskSpill&) = delete;
  DiskSpill& operator=(const DiskSpill&) = delete;

  bool put(RequestId id, const Image& image, const Owner& owner, double price_seconds) override;
  bool fetch(RequestId id) override;
  void forget(RequestId id) override;
  void end(RequestId id, bool is_stopping) override;
  void reap(std::vector<Spilled>& out) override;
  bool take(store::Completion& completion) override;
  void change_fingerprint(const store::Fingerprint& now, store::Kind kind) override;

 private:
  // Of a sequence. An answer to what was asked for an earlier park of it has another ticket.
  struct Kept {
    store::Ticket asked;                     // The save, then the last load.
    std::optional<store::PageId> page = {};  // Held; none: it is being written.
    bool is_coming = false;
  };
  // Bytes that the writer reads.
  struct Leaving {
    RequestId id;
    Image image;
  };

  store::Ticket next_ticket() { return store::Ticket(first_ticket + tickets_++); }
  Kept* find(RequestId id, store::Ticket asked);
  void written(const Leaving& leaving, const store::Completion& completion);
  void drop(const store::PageId& page);
  void hand_in_drops();
  void drop_outlived(RequestId id);

  // The desks count from 1 << 62 and 1 << 63, the archive from 1.
  static constexpr std::uint64_t first_ticket = std::uint64_t{1} << 61;

  ArchiveOptions options_;
  store::Kind kind_;
  std::uint64_t tickets_ = 0;
  std::unordered_map<store::Ticket, Leaving> leaving_;
  std::unordered_map<store::Ticket, RequestId> coming_;
  std::unordered_map<RequestId, Kept> kept_;
  // By request that has not ended: its pages of earlier parks.
  std::unordered_map<RequestId, std::vector<store::PageId>> outlived_;
  std::vector<store::PageId> dropping_;  // To be handed in.
  std::vector<Spilled> news_;
};

}  // namespace fermata::kv
