#include "scheduler/sequence.h"

#include "base/check.h"

#include <utility>

namespace fermata::scheduler {

Sequence::Sequence(Submission submission)
    : submission_(std::move(submission)), scanner_(submission_.request->stop) {
  FERMATA_CHECK(!request().prompt.empty(), "a request without a prompt");
  FERMATA_CHECK((submission_.sampler == nullptr) == (request().max_tokens == Tokens(0)),
                "a sampler exactly when tokens are wanted");
  if (submission_.sampler) seed_ = submission_.sampler->seed();
}

Seat Sequence::seat() const {
  FERMATA_CHECK(seat_.has_value(), "a sequence that has no seat");
  return *seat_;
}

Tokens Sequence::remaining() const {
  const Tokens limit = request().max_tokens;
  return limit < Tokens(0) ? Tokens(-1) : limit - predicted_;
}

void Sequence::admitted(Seat seat, Tokens reused, kv::Reservation reservation, Micros now) {
  FERMATA_CHECK(!seat_.has_value(), "seated twice");
  FERMATA_CHECK(reused < prompt_length(), "nothing left to compute");
  seat_ = seat;
  computed_ = cached_ = reused;
  reservation_ = std::move(reservation);
  admitted_at_ = now;
}

engine::RowGroup Sequence::rows(Tokens rows) {
  engine::RowGroup group;
  group.seat = seat();
  group.first = computed_;
  group.cancelled = &channel().abandoned();
  if (phase() == policy::Phase::decode) {
    FERMATA_CHECK(rows == Tokens(1), "a decode row is one");
    group.tokens = next_;
    group.sampler = submission_.sampler.get();
    return group;
  }
  FERMATA_CHECK(rows >= Tokens(1) && rows <= prompt_left(), "rows that the prompt does not have");
  group.tokens =
      std::span(request().prompt)
          .subspan(static_cast<std::size_t>(computed_.value), static_cast<std::size_t>(rows.value));
  if (rows == prompt_left()) group.sampler = submission_.sampler.get();
  return group;
}

std::optional<FinishReason> Sequence::limit_reached(Tokens cells, Tokens window, Micros now) const {
  if (remaining() == Tokens(0)) return FinishReason::limit;
  // The token just sampled would need the last cell; like llama-server, the reply ends before.
  if (cells + Tokens(1) >= window) return FinishReason::window;
  const Micros most = request().predict_time_max;
  if (most > Micros(0) && now - first_token_at_ > most) return FinishReason::limit;
  return std::nullopt;
}

std::optional<FinishReason> Sequence::accept(engine::Sampled sampled,
                                             const engine::Vocabulary& vocabulary, Tokens cells,
                                             Tokens window, Micros now) {
  if (predicted_ == Tokens(0)) first_token_at_ = now;
  predicted_ += Tokens(1);
  last_token_at_ = now;
  if (vocabulary.ends_generation(sampled.token)) return FinishReason::eos;

  TokenEvent event;
  event.token = sampled.token;
  event.logprob = sampled.logprob;
  event.top = std::move(sampled.top);
  const bool word = scanner_.feed(vocabulary.piece(sampled.token), event.text);
  channel().push(std::move(event));
  if (word) return FinishReason::word;
  next_[0] = sampled.token;
  return limit_reached(cells, window, now);
}

void Sequence::finish(FinishReason reason, FailureKind failure, Tokens window, Micros now) {
  FinalEvent event;
  event.text = scanner_.flush();
  const bool complete = reason == FinishReason::eos || reason == FinishReason::limit ||
                        reason == FinishReason::window;
  // A stop word that waited for a longer one was met all the same.
  if (complete && !scanner_.stop_word().empty()) reason = FinishReason::word;
  if (reason == FinishReason::word) event.stop_word = scanner_.stop_word();
  event.reason = reason;
  event.failure = failure;
  event.truncated = reason == FinishReason::window;
  event.prompt_tokens = prompt_length();
  event.window = window;
  event.seat = seat_;
  event.seed = seed_;
  Timings& timings = event.timings;
  timings.prompt_cached = cached_;
  timings.prompt_computed = seat_ ? std::min(computed_, prompt_length()) - cached_ : Tokens(0);
  const Micros prompt_end = predicted_ > Tokens(0) ? first_token_at_ : now;
  timings.prompt_time = seat_ ? prompt_end - admitted_at_ : Micros(0);
  timings.predicted = predicted_;
  timings.predicted_time = last_token_at_ - first_token_at_;
  timings.queue_time = (seat_ ? admitted_at_ : now) - submission_.submitted;
  reservation_ = kv::Reservation();
  channel().finish(std::move(event));
}

void Sequence::tell_progress(Micros now) {
  channel().progress({prompt_length(), cached_, computed_, now - admitted_at_});
}

}  // namespace fermata::scheduler
