// Who sits where while a plan is being made: what the seats would hold if the plan so far were
// applied, and the ways to seat a waiting request.
#pragma once

#include "policy/policy.h"

#include <array>
#include <optional>
#include <vector>

namespace fermata::policy {

// Valid as long as its view.
class SeatDraft {
 public:
  explicit SeatDraft(const View& view);

  SeatUse use(Seat seat) const { return use_[index(seat)]; }
  const SeatView& view(Seat seat) const { return view_.seats[index(seat)]; }
  // Cells that dropping the seat frees for certain.
  Tokens exclusive(Seat seat) const { return exclusive_[index(seat)]; }
  // Its cells begin another seat's sequence in this plan, so it must stay.
  bool lends(Seat seat) const { return lends_[index(seat)]; }

  // Seats that somebody could take.
  std::size_t not_busy() const;
  // Nothing to lose first, then longest unused. Never `except`.
  std::optional<Seat> best_free_seat(std::optional<Seat> except) const;
  // The idle seat that was not used for longest; none that lends, nor one of these.
  std::optional<Seat> oldest_idle(std::optional<Seat> except, std::optional<Seat> nor,
                                  const std::vector<Seat>& chosen) const;

  void empty(Seat seat) { use_[index(seat)] = SeatUse::empty; }
  void take(const Admission& admission);

 private:
  static std::size_t index(Seat seat) { return static_cast<std::size_t>(seat.value); }

  const View& view_;
  std::array<SeatUse, n_parallel_max + 1> use_{};
  std::array<Tokens, n_parallel_max + 1> exclusive_{};
  std::array<bool, n_parallel_max + 1> lends_{};
};

// The ways to seat a request, best first; the last resort computes everything anew. Empty: no seat.
std::vector<Admission> choices(const WaitingView& waiting, const SeatDraft& seats);

}  // namespace fermata::policy
