// One request on its way through the scheduler.
//
//   waiting ──admitted──► prefill ──first token──► decode ──► finished
//      └──────────────────────┴───────────────────────┴─► finished (cancelled, failed)
#pragma once

#include "base/types.h"
#include "core/request.h"
#include "core/stop_scanner.h"
#include "engine/sampler.h"
#include "engine/vocabulary.h"
#include "kv/pool.h"
#include "policy/policy.h"
#include "scheduler/channel.h"

#include <array>
#include <memory>
#include <optional>
#include <span>

namespace fermata::scheduler {

// What an API worker hands over. `sampler` is null exactly when request->max_tokens is 0.
struct Submission {
  std::shared_ptr<const Request> request;
  std::unique_ptr<engine::Sampler> sampler;
  std::shared_ptr<EventChannel> channel;
  Micros submitted;
};

// The scheduler thread's own.
class Sequence {
 public:
  explicit Sequence(Submission submission);

  const Request& request() const { return *submission_.request; }
  const std::shared_ptr<const Request>& shared_request() const { return submission_.request; }
  EventChannel& channel() { return *submission_.channel; }
  bool abandoned() const {
    return submission_.channel->abandoned().load(std::memory_order_acquire);
  }

  bool is_seated() const { return seat_.has_value(); }
  // REQUIRES: is_seated().
  Seat seat() const;
  policy::Phase phase() const {
    return computed_ < prompt_length() ? policy::Phase::prefill : policy::Phase::decode;
  }
  Tokens prompt_length() const {
    return Tokens(static_cast<std::int64_t>(request().prompt.size()));
  }
  Tokens prompt_left() const {
    return computed_ < prompt_length() ? prompt_length() - computed_ : Tokens(0);
  }
  Tokens computed() const { return computed_; }
  Tokens cached() const { return cached_; }
  Tokens predicted() const { return predicted_; }
  // -1: until the window is full.
  Tokens remaining() const;

  void admitted(Seat seat, Tokens reused, kv::Reservation reservation, Micros now);

  // The next `rows` rows as the engine wants them; spans live until the sequence changes.
  engine::RowGroup rows(Tokens rows);
  // The engine computed a prefix of the rows it was given last.
  void advanced(Tokens computed) { computed_ += computed; }

  // Takes a sampled token. Pushes its event; the reason when the reply is complete with it.
  // `cells` is what the seat holds, `window` the most it may.
  std::optional<FinishReason> accept(engine::Sampled sampled, const engine::Vocabulary& vocabulary,
                                     Tokens cells, Tokens window, Micros now);

  // The one final event. Nothing may follow.
  void finish(FinishReason reason, FailureKind failure, Tokens window, Micros now);
  void tell_progress(Micros now);

 private:
  std::optional<FinishReason> limit_reached(Tokens cells, Tokens window, Micros now) const;

  Submission submission_;
  StopScanner scanner_;
  kv::Reservation reservation_;
  std::optional<Seat> seat_;
  Tokens computed_{0};  // Rows in the cells: cached, prompt, and replies fed back.
  Tokens cached_{0};
  Tokens predicted_{0};
  std::array<TokenId, 1> next_{};  // The decode row.
  std::uint32_t seed_ = 0;
  Micros admitted_at_{0}, first_token_at_{0}, last_token_at_{0};
};

}  // namespace fermata::scheduler
