#include "api/generation.h"

#include "api/error.h"
#include "core/utf8.h"

#include <cmath>
#include <utility>

namespace fermata::api {
namespace {

class GenerationExchange final : public Exchange {
 public:
  GenerationExchange(std::shared_ptr<const Request> request,
                     std::shared_ptr<scheduler::EventChannel> channel,
                     const engine::Vocabulary& vocabulary, std::unique_ptr<ReplyFormat> format,
                     const GenerationOptions& options)
      : request_(std::move(request)),
        channel_(std::move(channel)),
        format_(std::move(format)),
        options_(options),
        probabilities_(vocabulary, options.probabilities) {
    if (options_.ping_chunks) {
      format_->keepalive(ping_);
    } else {
      ping_ = ":\n\n";
    }
  }

  ~GenerationExchange() override {
    if (!done_) channel_->abandon();
  }
  GenerationExchange(const GenerationExchange&) = delete;
  GenerationExchange& operator=(const GenerationExchange&) = delete;

  Piece pull() override {
    Piece piece;
    if (done_) return piece;
    if (options_.stream && !head_sent_) {
      // Whatever could be the client's mistake was checked before the request was queued, so the
      // head goes out at once and the client sees that it is served.
      head_sent_ = true;
      piece.head = Head{.content_type = "text/event-stream", .headers = {}, .stream = true};
      format_->begin(piece.body);
    }
    channel_->take(taken_);
    take_events(piece.body);
    if (taken_.final) take_final(*taken_.final, piece);
    return piece;
  }

  void wake_with(std::function<void()> wake) override {
    // A reply that is not streamed has nothing to send before its end: fewer, larger turns.
    channel_->wake_with(std::move(wake), options_.stream ? 1 : tokens_per_turn);
  }
  std::string_view ping() const override { return ping_; }
  int ping_interval_seconds() const override {
    if (!options_.stream) return 0;
    return parked_ ? parked_ping_interval_s : options_.ping_interval_s;
  }

 private:
  static constexpr std::size_t tokens_per_turn = 64;
  static constexpr int parked_ping_interval_s = 2;

  // Tokens, with the notices that came between them.
  void take_events(std::string& out) {
    std::size_t next = 0;
    const auto take_until = [&](std::size_t end) {
      for (; next < end; ++next) take_token(taken_.tokens[next], out);
    };
    for (const Notice& notice : taken_.notices) {
      take_until(notice.after);
      parked_ = notice.kind == NoticeKind::preempted;
      if (options_.stream) out += parked_ ? ": preempted\n\n" : ": resumed\n\n";
    }
    take_until(taken_.tokens.size());
  }

  void take_token(const TokenEvent& event, std::string& out) {
    const std::string text = cutter_.feed(event.text);
    outcome_.text += text;
    outcome_.tokens.push_back(event.token);
    probabilities_.add(event);
    if (!options_.stream) return;
    // They wait for the text: a character may take several tokens.
    const std::string probabilities = text.empty() ? std::string() : probabilities_.take();
    format_->token(event, {text, probabilities}, out);
  }

  void take_final(const FinalEvent& final, Piece& piece) {
    done_ = piece.done = true;
    if (final.reason == FinishReason::failed) {
      fail(error_of(final), piece);
      return;
    }
    std::string tail = cutter_.feed(final.text);
    tail += cutter_.flush();
    outcome_.text += tail;
    probabilities_.end(final);
    std::string probabilities = probabilities_.take();
    outcome_.request = request_.get();
    outcome_.final = &final;
    if (options_.stream) {
      format_->end(outcome_, {tail, probabilities}, piece.body);
    } else {
      outcome_.probabilities = std::move(probabilities);
      piece.head = Head{};
      piece.body = format_->whole(outcome_);
    }
  }

  void fail(const ApiError& error, Piece& piece) {
    if (options_.stream) {
      append_event(piece.body, error_json(error));
      return;
    }
    piece = error_exchange(error)->pull();
  }

  std::shared_ptr<const Request> request_;
  std::shared_ptr<scheduler::EventChannel> channel_;
  std::unique_ptr<ReplyFormat> format_;
  GenerationOptions options_;
  std::string ping_;
  scheduler::EventChannel::Taken taken_;
  Utf8Cutter cutter_;
  Outcome outcome_;
  Probabilities probabilities_;
  bool head_sent_ = false;
  bool parked_ = false;
  bool done_ = false;
};

double ms(Micros time) { return static_cast<double>(time.value) / 1000.0; }

// 0 where the quotient says nothing: a client's JSON holds finite numbers only.
double ratio(double a, double b) { return b > 0.0 ? a / b : 0.0; }

}  // namespace

std::unique_ptr<Exchange> generation_exchange(std::shared_ptr<const Request> request,
                                              std::shared_ptr<scheduler::EventChannel> channel,
                                              const engine::Vocabulary& vocabulary,
                                              std::unique_ptr<ReplyFormat> format,
                                              const GenerationOptions& options) {
  return std::make_unique<GenerationExchange>(std::move(request), std::move(channel), vocabulary,
                                              std::move(format), options);
}

std::string one_choice(const Json& reply, const Json& choice, std::string_view probabilities) {
  std::string text = dump(choice);
  if (!probabilities.empty()) {
    append_member(text, "logprobs", "{\"content\":" + std::string(probabilities) + '}');
  }
  std::string out = dump(reply);
  append_member(out, "choices", '[' + text + ']');
  return out;
}

void append_event(std::string& out, std::string_view json) {
  out += "data: ";
  out += json;
  out += "\n\n";
}

Json timings_json(const Timings& timings) {
  const double prompt_ms = ms(timings.prompt_time), predicted_ms = ms(timings.predicted_time);
  const auto prompt_n = static_cast<double>(timings.prompt_computed.value);
  const auto predicted_n = static_cast<double>(timings.predicted.value);
  return {{"cache_n", timings.prompt_cached.value},
          {"prompt_n", timings.prompt_computed.value},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", ratio(prompt_ms, prompt_n)},
          {"prompt_per_second", ratio(prompt_n * 1000.0, prompt_ms)},
          {"predicted_n", timings.predicted.value},
          {"predicted_ms", predicted_ms},
          {"predicted_per_token_ms", ratio(predicted_ms, predicted_n)},
          {"predicted_per_second", ratio(predicted_n * 1000.0, predicted_ms)}};
}

Json parking_json(const Parking& parking) {
  Json modes = Json::array();
  if (parking.swaps > 0) modes.push_back("swap");
  if (parking.recomputes > 0) modes.push_back("recompute");
  const bool is_exact = parking.recomputed == Tokens(0) || parking.same_shapes;
  return {{"parks", parking.parks()},
          {"parked_ms", ms(parking.time)},
          {"modes", modes},
          {"recomputed_tokens", parking.recomputed.value},
          {"exactness", is_exact ? "exact" : "recomputed"}};
}

void add_figures(Json& reply, const FinalEvent& final) {
  reply["timings"] = timings_json(final.timings);
  reply["fermata"] = parking_json(final.parking);
}

Json usage_json(const Timings& timings, Tokens prompt) {
  return {{"completion_tokens", timings.predicted.value},
          {"prompt_tokens", prompt.value},
          {"total_tokens", (prompt + timings.predicted).value},
          {"prompt_tokens_details", {{"cached_tokens", timings.prompt_cached.value}}}};
}

std::string_view finish_reason_name(FinishReason reason) {
  return reason == FinishReason::limit || reason == FinishReason::window ? "length" : "stop";
}

}  // namespace fermata::api
