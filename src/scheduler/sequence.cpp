#include "scheduler/sequence.h"

#include "base/check.h"

#include <utility>

namespace fermata::scheduler {
namespace {

// Without a window that ends it, a reply has this one limit more.
constexpr Tokens shifted_reply_max{1 << 20};

}  // namespace

Sequence::Sequence(Submission submission, const SequenceOptions& options)
    : submission_(std::move(submission)),
      scanner_(submission_.request->stop),
      indent_(static_cast<std::size_t>(submission_.request->n_indent)),
      keeps_text_(options.keeps_text),
      shifts_(options.shifts) {
  FERMATA_CHECK(!request().prompt.empty(), "a request without a prompt");
  FERMATA_CHECK((submission_.sampler == nullptr) == (request().max_tokens == Tokens(0)),
                "a sampler exactly when tokens are wanted");
  parking_.same_shapes = options.same_shapes;
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

void Sequence::admitted(Seat seat, Tokens reused, PrefixSource source, kv::Reservation reservation,
                        Micros now) {
  FERMATA_CHECK(!seat_.has_value(), "seated twice");
  FERMATA_CHECK(reused < prompt_length(), "nothing left to compute");
  seat_ = last_seat_ = seat;
  computed_ = cached_ = reached_ = reused;
  prefix_source_ = reused > Tokens(0) ? source : PrefixSource::none;
  reservation_ = std::move(reservation);
  admitted_at_ = now;
  if (std::exchange(told_in_queue_, false)) channel().notice(NoticeKind::resumed);
}

void Sequence::hold() {
  held_ = true;
  if (is_seated() || is_parked() || std::exchange(told_in_queue_, true)) return;
  channel().notice(NoticeKind::preempted);
}

bool Sequence::look_at_room(Micros now) {
  if (channel().has_room()) {
    blocked_since_.reset();
    return false;
  }
  if (!blocked_since_) blocked_since_ = now;
  return true;
}

std::span<const TokenId> Sequence::known_rows() const {
  // A replay within the prompt simply goes on into the rest of it.
  const bool beyond_prompt = reached_ > prompt_length();
  if (replaying() && (beyond_prompt || is_shifted_)) return history_;
  if (is_shifted_) return {};
  return request().prompt;
}

void Sequence::park(policy::ParkMode mode, kv::Image image, Micros now) {
  FERMATA_CHECK(is_seated() && !is_parked(), "parking what has no place");
  seat_.reset();
  reservation_ = kv::Reservation();
  park_mode_ = mode;
  image_ = std::move(image);
  // In the middle of a replay the cells hold less than what is to come back.
  if (!replaying()) history_ = image_.tokens;
  parked_at_ = now;
  if (!away_since_) away_since_ = now;
  (mode == policy::ParkMode::swap ? parking_.swaps : parking_.recomputes) += 1;
  channel().notice(NoticeKind::preempted);
}

void Sequence::forget_bytes() {
  FERMATA_CHECK(is_parked(), "it still has its cells");
  image_.pieces.clear();
  image_.away = Bytes(0);
  if (std::exchange(park_mode_, policy::ParkMode::recompute) == policy::ParkMode::recompute) return;
  --parking_.swaps;
  ++parking_.recomputes;
}

void Sequence::bytes_are_out() {
  FERMATA_CHECK(is_parked(), "it still has its cells");
  image_.away = image_.size();
  ++parking_.spilled;
}

void Sequence::resume(Seat seat, Tokens restored, kv::Reservation reservation, Micros now) {
  FERMATA_CHECK(is_parked(), "resuming what is not parked");
  seat_ = last_seat_ = seat;
  reservation_ = std::move(reservation);
  parked_at_.reset();
  predicted_at_start_ = predicted_;
  computed_ = restored;
  if (!replaying()) back_at_work(now);
  channel().notice(NoticeKind::resumed);
}

void Sequence::back_at_work(Micros now) {
  history_ = {};
  if (!away_since_) return;
  (predicted_ > Tokens(0) ? away_in_reply_ : away_in_prompt_) += now - *away_since_;
  away_since_.reset();
}

Tokens Sequence::advanced(Tokens computed, Micros now) {
  const bool replayed = replaying();
  const Tokens before = reached_;
  computed_ += computed;
  reached_ = std::max(reached_, computed_);
  const Tokens fresh = reached_ - before;
  parking_.recomputed += computed - fresh;
  if (replayed && !replaying()) back_at_work(now);
  return fresh;
}

void Sequence::heed_client() {
  const std::atomic<bool>* wanted = request().end_thoughts.get();
  if (wanted == nullptr || thoughts_ended_ || !submission_.sampler) return;
  if (wanted->load(std::memory_order_relaxed)) {
    thoughts_ended_ = submission_.sampler->end_thoughts();
  }
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
    heed_client();
    return group;
  }
  FERMATA_CHECK(rows >= Tokens(1) && rows <= rows_left(), "rows that the prompt does not have");
  group.tokens = known_rows().subspan(static_cast<std::size_t>(computed_.value),
                                      static_cast<std::size_t>(rows.value));
  // After a replay the next token is known already.
  if (rows == rows_left() && predicted_ == Tokens(0)) {
    group.sampler = submission_.sampler.get();
    heed_client();
  }
  return group;
}

void Sequence::shifted(std::vector<TokenId> tokens, Tokens held, Micros now) {
  is_shifted_ = true;
  reached_ = Tokens(static_cast<std::int64_t>(tokens.size()));
  computed_ = held;
  if (!replaying()) return;
  history_ = std::move(tokens);
  if (!away_since_) away_since_ = now;
}

std::optional<FinishReason> Sequence::limit_reached(Tokens cells, Tokens window, bool ends_line,
                                                    Micros now) const {
  if (remaining() == Tokens(0)) return FinishReason::limit;
  // The token just sampled would need the last cell; like llama-server, the reply ends before.
  if (!shifts_ && cells + Tokens(1) >= window) return FinishReason::window;
  if (shifts_ && predicted_ >= shifted_reply_max) return FinishReason::limit;
  const Micros most = request().predict_time_max;
  const bool is_late = most > Micros(0) && now - first_token_at_ - away_in_reply_ > most;
  // Like llama-server: whoever limits the time wants whole lines.
  if (is_late && ends_line) return FinishReason::limit;
  return std::nullopt;
}

std::optional<FinishReason> Sequence::accept(engine::Sampled sampled,
                                             const engine::Vocabulary& vocabulary, Tokens cells,
                                             Tokens window, Micros now) {
  if (predicted_ == Tokens(0)) first_token_at_ = now;
  predicted_ += Tokens(1);
  last_token_at_ = now;
  away_before_last_ = away_in_reply_;
  if (vocabulary.ends_generation(sampled.token)) return FinishReason::eos;

  TokenEvent event;
  event.token = sampled.token;
  event.seat = seat();
  event.logprob = sampled.logprob;
  event.top = std::move(sampled.top);
  const std::string_view piece = request().special ? vocabulary.piece_with_special(sampled.token)
                                                   : vocabulary.piece(sampled.token);
  const bool word = scanner_.feed(piece, event.text);
  out_of_block_ = indent_.feed(event.text);
  const bool ends_line = event.text.find('\n') != std::string::npos;
  has_new_line_ = has_new_line_ || ends_line;
  if (keeps_text_) text_ += event.text;
  if (request().wants_timings) event.timings = timings(now);
  channel().push(std::move(event));
  // What the indentation cut off came before the stop word.
  if (out_of_block_) return FinishReason::limit;
  if (word) return FinishReason::word;
  next_[0] = sampled.token;
  return limit_reached(cells, window, ends_line, now);
}

void Sequence::finish(FinishReason reason, FailureKind failure, Tokens window, Micros now) {
  FinalEvent event;
  const bool complete = reason == FinishReason::eos || reason == FinishReason::limit ||
                        reason == FinishReason::window;
  if (!out_of_block_) {
    event.text = scanner_.flush();
    out_of_block_ = indent_.feed(event.text);
  }
  if (complete && out_of_block_) {
    reason = FinishReason::limit;
  } else if (complete && !scanner_.stop_word().empty()) {
    // A stop word that waited for a longer one was met all the same.
    reason = FinishReason::word;
  }
  if (reason == FinishReason::word) event.stop_word = scanner_.stop_word();
  event.reason = reason;
  event.failure = failure;
  event.truncated = reason == FinishReason::window || is_shifted_;
  event.is_cut = reason == FinishReason::word || out_of_block_;
  event.prompt_tokens = prompt_length();
  event.window = window;
  event.seat = last_seat_;
  if (away_since_) back_at_work(now);
  parking_.time = away_in_prompt_ + away_in_reply_;
  event.parking = parking_;
  event.prefix_source = prefix_source_;
  event.seed = seed_;
  event.timings = timings(now);
  reservation_ = kv::Reservation();
  channel().finish(std::move(event));
}

Timings Sequence::timings(Micros now) const {
  Timings out;
  out.prompt_cached = cached_;
  out.prompt_computed = prompt_done() - cached_;
  const Micros prompt_end = predicted_ > Tokens(0) ? first_token_at_ : now;
  out.prompt_time = last_seat_ ? prompt_end - admitted_at_ - away_in_prompt_ : Micros(0);
  out.predicted = predicted_;
  // What came after the last token, a park that nobody came back from, is no time of the reply.
  out.predicted_time = std::max(last_token_at_ - first_token_at_ - away_before_last_, Micros(0));
  out.queue_time = (last_seat_ ? admitted_at_ : now) - submission_.submitted;
  return out;
}

void Sequence::tell_progress(Micros now) {
  channel().progress(
      {prompt_length(), cached_, prompt_done(), now - admitted_at_ - away_in_prompt_, seat()});
}

}  // namespace fermata::scheduler
