// One request on its way through the scheduler.
//
//   waiting ──admitted──► prefill ──first token──► decode ──► finished
//      │                    │   ▲                   │  ▲
//      │                 parked─┘                parked┘  (by recompute: through a replay)
//      └────────────────────┴───────────────────────┴──────► finished (cancelled, failed)
#pragma once

#include "base/types.h"
#include "core/indent_limit.h"
#include "core/request.h"
#include "core/stop_scanner.h"
#include "engine/sampler.h"
#include "engine/vocabulary.h"
#include "kv/pool.h"
#include "policy/policy.h"
#include "scheduler/channel.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace fermata::scheduler {

// What an API worker hands over. `sampler` is null exactly when request->max_tokens is 0.
struct Submission {
  std::shared_ptr<const Request> request;
  std::unique_ptr<engine::Sampler> sampler;
  std::shared_ptr<EventChannel> channel;
  Micros submitted;
};

struct SequenceOptions {
  bool same_shapes = false;  // What is computed again after a park is so row for row.
  bool keeps_text = false;   // For those who look on.
  bool shifts = false;       // A full window is no end.
};

// The scheduler thread's own.
class Sequence {
 public:
  Sequence(Submission submission, const SequenceOptions& options);

  const Request& request() const { return *submission_.request; }
  const std::shared_ptr<const Request>& shared_request() const { return submission_.request; }
  GroupId group() const { return request().group; }
  EventChannel& channel() { return *submission_.channel; }
  bool abandoned() const {
    return submission_.channel->abandoned().load(std::memory_order_acquire);
  }

  Micros submitted() const { return submission_.submitted; }
  bool is_seated() const { return seat_.has_value(); }
  // REQUIRES: is_seated().
  Seat seat() const;
  policy::Phase phase() const {
    return rows_left() > Tokens(0) ? policy::Phase::prefill : policy::Phase::decode;
  }
  Tokens prompt_length() const {
    return Tokens(static_cast<std::int64_t>(request().prompt.size()));
  }
  // Of the prompt, or of what is computed again after a park; 0: the next row decodes.
  Tokens rows_left() const { return std::max(rows_known() - computed_, Tokens(0)); }
  // Of rows_left(), those of the prompt.
  Tokens prompt_left() const {
    return is_shifted_ ? Tokens(0) : std::max(prompt_length() - computed_, Tokens(0));
  }
  // Rows in the cells; while parked, those that were.
  Tokens computed() const { return computed_; }
  Tokens reached() const { return reached_; }  // The most they were.
  // Rows of the prompt that were computed at least once.
  Tokens prompt_done() const {
    return is_shifted_ ? prompt_length() : std::min(reached_, prompt_length());
  }
  bool replaying() const { return computed_ < reached_; }
  Tokens cached() const { return cached_; }
  Tokens predicted() const { return predicted_; }
  bool has_new_line() const { return has_new_line_; }
  // Of the reply so far; empty unless it is kept.
  const std::string& text() const { return text_; }
  // -1: until the window is full.
  Tokens remaining() const;

  // Whether its client leaves no room for another event; from when on is remembered.
  bool look_at_room(Micros now);
  Micros blocked_for(Micros now) const {
    return blocked_since_ ? now - *blocked_since_ : Micros(0);
  }

  // Kept out of the pool by an operator, wherever it is; a queued one is told at once, one that
  // runs when it is parked.
  void hold();
  void let_go() { held_ = false; }
  bool is_held() const { return held_; }
  std::optional<Seat> last_seat() const { return last_seat_; }

  // Whether the store was asked for the beginning of its prompt.
  enum class Search : std::uint8_t { open, loading, done, found };
  Search search() const { return search_; }
  void searched(Search state) { search_ = state; }

  bool is_parked() const { return parked_at_.has_value(); }
  const Parking& parking() const { return parking_; }
  // REQUIRES: is_parked(), these three.
  const kv::Image& image() const { return image_; }
  policy::ParkMode park_mode() const { return park_mode_; }
  Micros parked_at() const { return *parked_at_; }
  // Tokens since it was admitted or resumed.
  Tokens since_start() const { return predicted_ - predicted_at_start_; }

  // Its seat has another number in the new geometry. REQUIRES: is_seated().
  void move_to(Seat seat) {
    seat_ = last_seat_ = seat;
    reservation_.move_to(seat);
  }
  // Bytes mean nothing any more: it will be computed again. REQUIRES: is_parked(), these four.
  void forget_bytes();
  void bytes_are_out();                         // Kept where it is slower as well.
  void drop_bytes() { image_.pieces.clear(); }  // From RAM. REQUIRES: they are out.
  void bytes_are_back(std::vector<kv::Piece> pieces) { image_.pieces = std::move(pieces); }

  void park(policy::ParkMode mode, kv::Image image, Micros now);
  // REQUIRES: is_parked(); once.
  kv::Image take_image() { return std::exchange(image_, {}); }
  // It has a seat again, which holds the cells of its image or, `restored` being 0, nothing.
  void resume(Seat seat, Tokens restored, kv::Reservation reservation, Micros now);

  void admitted(Seat seat, Tokens reused, PrefixSource source, kv::Reservation reservation,
                Micros now);

  // The next `rows` rows as the engine wants them; spans live until the sequence changes.
  engine::RowGroup rows(Tokens rows);
  // The engine computed a prefix of the rows it was given last. Answers how many of them are new:
  // the others had been computed before a park.
  Tokens advanced(Tokens computed, Micros now);

  // Its context was shifted: `tokens` are left of all its rows, the first `held` of them in the
  // cells; the others are computed again.
  void shifted(std::vector<TokenId> tokens, Tokens held, Micros now);

  // Takes a sampled token. Pushes its event; the reason when the reply is complete with it.
  // `cells` is what the seat holds, `window` the most it may.
  std::optional<FinishReason> accept(engine::Sampled sampled, const engine::Vocabulary& vocabulary,
                                     Tokens cells, Tokens window, Micros now);

  // The one final event. Nothing may follow.
  void finish(FinishReason reason, FailureKind failure, Tokens window, Micros now);
  void tell_progress(Micros now);

 private:
  // Passes on to the sampler that the client wants no more thoughts; again and again, until there
  // are some to end.
  void heed_client();
  // `ends_line`: the last token did.
  std::optional<FinishReason> limit_reached(Tokens cells, Tokens window, bool ends_line,
                                            Micros now) const;
  Timings timings(Micros now) const;
  // All rows whose tokens are known beforehand: the prompt's, or those to be replayed.
  std::span<const TokenId> known_rows() const;
  Tokens rows_known() const { return Tokens(static_cast<std::int64_t>(known_rows().size())); }
  void back_at_work(Micros now);

  Submission submission_;
  StopScanner scanner_;
  IndentLimit indent_;
  bool out_of_block_ = false;  // The indentation ended the reply.
  kv::Reservation reservation_;
  std::optional<Seat> seat_, last_seat_;
  Tokens computed_{0};  // Rows in the cells: cached, prompt, and replies fed back.
  Tokens reached_{0};   // The most that computed_ has been; since the last shift, if any.
  Tokens cached_{0};
  PrefixSource prefix_source_ = PrefixSource::none;  // Of cached_.
  Tokens predicted_{0};
  bool has_new_line_ = false;  // In the text so far.
  const bool keeps_text_, shifts_;
  bool is_shifted_ = false;  // It lost tokens, perhaps of its prompt.
  std::string text_;
  bool thoughts_ended_ = false;    // By the client.
  std::array<TokenId, 1> next_{};  // The decode row.
  std::uint32_t seed_ = 0;

  Search search_ = Search::open;
  bool held_ = false, told_in_queue_ = false;  // That it is held.
  Parking parking_;
  kv::Image image_;               // While parked.
  std::vector<TokenId> history_;  // Until a replay is through: the tokens of all rows it computes.
  policy::ParkMode park_mode_ = policy::ParkMode::swap;
  std::optional<Micros> parked_at_, blocked_since_;
  std::optional<Micros> away_since_;  // From the park until its work goes on where it was.
  Micros away_in_prompt_{0}, away_in_reply_{0}, away_before_last_{0};
  Tokens predicted_at_start_{0};

  Micros admitted_at_{0}, first_token_at_{0}, last_token_at_{0};
};

}  // namespace fermata::scheduler
