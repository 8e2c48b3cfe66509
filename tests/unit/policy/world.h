// A pool of numbered cells, in the plainest way, from which views are made and to which plans are
// applied: so that the numbers of a view are always true, and a plan's promises can be counted.
#pragma once

#include "policy/policy.h"

#include <string>
#include <vector>

namespace fermata::policy {

// One character is one token.
class World {
 public:
  struct Memory {
    Layout layout = Layout::pooled;
    bool cells_per_token = true;  // Not so: recurrent memory.
    bool cuts_and_shares = true;  // Plain attention. Sharing needs the pooled layout too.
  };
  World(int seats, std::int64_t cells) : World(seats, cells, Memory{}) {}
  World(int seats, std::int64_t cells, const Memory& memory);

  // --- What is resident. REQUIRES: the seat is empty and the cells are there. ---

  void idle(int seat, const std::string& text, std::int64_t last_used);
  // Computes `text`, promised `promised` cells in all.
  void busy(int seat, const std::string& text, std::int64_t promised);
  // The first n tokens of `from` in the same cells, then `rest`.
  void idle_shared(int seat, int from, std::size_t n, const std::string& rest,
                   std::int64_t last_used);
  void busy_shared(int seat, int from, std::size_t n, const std::string& rest,
                   std::int64_t promised);
  void clear(int seat);  // When it was used last stays known.

  // --- Who waits and who runs ---

  // max_tokens -1: until the window is full.
  void wait(std::uint64_t id, const std::string& prompt, std::int64_t max_tokens,
            std::optional<Seat> seat = std::nullopt);
  void run(const RunningView& running) { running_.push_back(running); }

  // Valid until the world changes.
  View view();
  Tokens window() const;
  Tokens unpromised() const;
  SeatUse use(int seat) const { return seats_[static_cast<std::size_t>(seat)].use; }
  const std::string& text(int seat) const { return seats_[static_cast<std::size_t>(seat)].text; }

  // As the scheduler does it. What the plan breaks by that, or nothing.
  std::string apply(const Plan& plan);

  Tokens batch_max{512};
  Micros step_budget{0};
  Rates rates;

 private:
  struct SeatState {
    SeatUse use = SeatUse::empty;
    std::string text;
    std::vector<int> cells;
    std::int64_t promised = 0;
    std::int64_t last_used = 0;
  };
  struct Waiting {
    RequestId id;
    std::string prompt;
    Tokens need;
    std::optional<Seat> seat;
  };

  SeatState& at(Seat seat) { return seats_[static_cast<std::size_t>(seat.value)]; }
  static void clear(SeatState& seat);
  void compute(SeatState& seat, const std::string& text);
  void share(SeatState& seat, int from, std::size_t n);
  void cut(SeatState& seat, std::size_t keep);
  Tokens used(const std::vector<bool>& of) const;
  Tokens used() const { return used(std::vector<bool>(seats_.size(), true)); }
  Tokens used_by_busy() const;
  Tokens exclusive(std::size_t seat) const;
  Tokens outstanding() const;
  PrefixView prefix(const SeatState& seat, const std::string& prompt) const;
  std::string admit(const Admission& admission);

  Memory memory_;
  Tokens cells_;
  int next_cell_ = 0;
  std::vector<SeatState> seats_;
  std::vector<Waiting> waiting_;
  std::vector<RunningView> running_;
  // What a view points into.
  std::vector<SeatView> seat_views_;
  std::vector<WaitingView> waiting_views_;
  std::vector<std::vector<PrefixView>> prefixes_;
};

}  // namespace fermata::policy
