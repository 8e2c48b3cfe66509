#include "api/generation.h"

#include "api/error.h"
#include "core/utf8.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fermata::api {
namespace {

class GenerationExchange final : public Exchange {
 public:
  GenerationExchange(std::vector<Started> started, const engine::Vocabulary& vocabulary,
                     std::unique_ptr<ReplyFormat> format, const GenerationOptions& options)
      : format_(std::move(format)), options_(options), outcomes_(started.size()) {
    for (Started& one : started) {
      ProbabilityOptions probabilities = options.probabilities;
      probabilities.special = one.request->special;
      choices_.push_back({std::move(one), {}, Probabilities(vocabulary, probabilities)});
    }
    if (options_.ping_chunks) {
      format_->keepalive(ping_);
    } else {
      ping_ = ":\n\n";
    }
  }

  ~GenerationExchange() override { abandon(); }
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
      for (std::size_t i = 0; i < choices_.size(); ++i) format_->begin(i, piece.body);
    }
    for (std::size_t i = 0; i < choices_.size() && !done_; ++i) {
      if (choices_[i].done) continue;
      choices_[i].started.channel->take(taken_);
      if (taken_.progress && options_.stream) {
        format_->progress(i, *taken_.progress, piece.body);
      }
      take_events(i, piece.body);
      if (taken_.final) take_final(i, piece);
    }
    return piece;
  }

  void wake_with(std::function<void()> wake) override {
    // A reply that is not streamed has nothing to send before its end: fewer, larger turns.
    const std::size_t tokens = options_.stream ? 1 : tokens_per_turn;
    for (Choice& choice : choices_) choice.started.channel->wake_with(wake, tokens);
  }
  std::string_view ping() const override { return ping_; }
  int ping_interval_seconds() const override {
    if (!options_.stream) return 0;
    return parked_ > 0 ? parked_ping_interval_s : options_.ping_interval_s;
  }

 private:
  static constexpr std::size_t tokens_per_turn = 64;
  static constexpr int parked_ping_interval_s = 2;

  struct Choice {
    Started started;
    Utf8Cutter cutter;
    Probabilities probabilities;
    bool done = false;
  };

  void abandon() {
    for (Choice& choice : choices_) {
      if (!std::exchange(choice.done, true)) choice.started.channel->abandon();
    }
  }

  // Tokens, with the notices that came between them.
  void take_events(std::size_t i, std::string& out) {
    std::size_t next = 0;
    const auto take_until = [&](std::size_t end) {
      for (; next < end; ++next) take_token(i, taken_.tokens[next], out);
    };
    for (const Notice& notice : taken_.notices) {
      take_until(notice.after);
      if (notice.kind == NoticeKind::reconfigured) {
        if (options_.stream && i == 0) out += ": reconfigured\n\n";
        continue;
      }
      const bool leaves = notice.kind == NoticeKind::preempted;
      parked_ += leaves ? 1 : -1;
      // Of several choices that wait, one notice.
      if (!options_.stream || parked_ != (leaves ? 1 : 0)) continue;
      out += leaves ? ": preempted\n\n" : ": resumed\n\n";
    }
    take_until(taken_.tokens.size());
  }

  void take_token(std::size_t i, const TokenEvent& event, std::string& out) {
    Choice& choice = choices_[i];
    const std::string text = choice.cutter.feed(event.text);
    outcomes_[i].text += text;
    outcomes_[i].tokens.push_back(event.token);
    choice.probabilities.add(event);
    if (!options_.stream) return;
    // They wait for the text: a character may take several tokens.
    const std::string shown = text.empty() ? std::string() : choice.probabilities.take();
    const std::string timings = event.timings ? dump(timings_json(*event.timings)) : std::string();
    const Tokens prompt{static_cast<std::int64_t>(choice.started.request->prompt.size())};
    format_->token(i, event, {text, shown, timings, prompt}, out);
  }

  void take_final(std::size_t i, Piece& piece) {
    Choice& choice = choices_[i];
    choice.done = true;
    if (taken_.final->reason == FinishReason::failed) {
      fail(error_of(*taken_.final), piece);
      return;
    }
    std::string tail = choice.cutter.feed(taken_.final->text);
    tail += choice.cutter.flush();
    choice.probabilities.end(*taken_.final);
    Outcome& outcome = outcomes_[i];
    outcome.index = i;
    outcome.prompt = choice.started.prompt;
    outcome.text += tail;
    outcome.probabilities = choice.probabilities.take();
    outcome.request = choice.started.request.get();
    outcome.final = std::move(*taken_.final);
    if (options_.stream) format_->end(outcome, {tail, outcome.probabilities, {}}, piece.body);
    done_ = std::all_of(choices_.begin(), choices_.end(), [](const Choice& c) { return c.done; });
    if (!done_) return;
    piece.done = true;
    if (options_.stream) {
      format_->close(outcomes_, piece.body);
    } else {
      piece.head = Head{};
      piece.body = format_->whole(outcomes_);
    }
  }

  // One choice that fails ends all: the reply could not be what was asked for.
  void fail(const ApiError& error, Piece& piece) {
    done_ = piece.done = true;
    abandon();
    if (options_.stream) {
      format_->failure(error, piece.body);
      return;
    }
    piece = error_exchange(error)->pull();
    piece.body = format_->whole_failure(error);
  }

  std::unique_ptr<ReplyFormat> format_;
  GenerationOptions options_;
  std::string ping_;
  scheduler::EventChannel::Taken taken_;
  std::vector<Choice> choices_;
  std::vector<Outcome> outcomes_;  // By index into choices_.
  int parked_ = 0;                 // Choices that wait out of the pool.
  bool head_sent_ = false;
  bool done_ = false;
};

std::string_view name(PrefixSource source) {
  switch (source) {
    case PrefixSource::none:
      return "none";
    case PrefixSource::pool:
      return "pool";
    case PrefixSource::ram:
      return "ram";
    case PrefixSource::disk:
      return "disk";
  }
  return "none";
}

double ms(Micros time) { return static_cast<double>(time.value) / 1000.0; }

// 0 where the quotient says nothing: a client's JSON holds finite numbers only.
double ratio(double a, double b) { return b > 0.0 ? a / b : 0.0; }

}  // namespace

void ReplyFormat::failure(const ApiError& error, std::string& out) {
  append_event(out, error_json(error));
}

std::unique_ptr<Exchange> generation_exchange(std::vector<Started> started,
                                              const engine::Vocabulary& vocabulary,
                                              std::unique_ptr<ReplyFormat> format,
                                              const GenerationOptions& options) {
  return std::make_unique<GenerationExchange>(std::move(started), vocabulary, std::move(format),
                                              options);
}

std::string choice_text(const Json& choice, std::string_view probabilities) {
  std::string out = dump(choice);
  if (!probabilities.empty()) {
    append_member(out, "logprobs", "{\"content\":" + std::string(probabilities) + '}');
  }
  return out;
}

std::string with_choices(const Json& reply, std::string_view choices) {
  std::string out = dump(reply);
  append_member(out, "choices", '[' + std::string(choices) + ']');
  return out;
}

FinalEvent total(std::span<const Outcome> choices) {
  FinalEvent out = choices.front().final;
  std::size_t prompt = choices.front().prompt;
  for (const Outcome& choice : choices.subspan(1)) {
    const FinalEvent& final = choice.final;
    if (std::exchange(prompt, choice.prompt) != choice.prompt) {
      out.prompt_tokens += final.prompt_tokens;
      out.timings.prompt_cached += final.timings.prompt_cached;
      out.timings.prompt_computed += final.timings.prompt_computed;
      out.timings.prompt_time = std::max(out.timings.prompt_time, final.timings.prompt_time);
    }
    out.timings.predicted += final.timings.predicted;
    out.timings.predicted_time = std::max(out.timings.predicted_time, final.timings.predicted_time);
    out.parking.swaps += final.parking.swaps;
    out.parking.recomputes += final.parking.recomputes;
    out.parking.recomputed += final.parking.recomputed;
    out.parking.time = std::max(out.parking.time, final.parking.time);
  }
  return out;
}

void append_event(std::string& out, std::string_view json) {
  out += "data: ";
  out += json;
  out += "\n\n";
}

void append_named_event(std::string& out, std::string_view name, std::string_view json) {
  out += "event: ";
  out += name;
  out += '\n';
  append_event(out, json);
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

Json progress_json(const ProgressEvent& progress) {
  return {{"total", progress.total.value},
          {"cache", progress.cached.value},
          {"processed", progress.processed.value},
          {"time_ms", ms(progress.elapsed)}};
}

Json fermata_json(const FinalEvent& final) {
  const Parking& parking = final.parking;
  Json modes = Json::array();
  if (parking.swaps > 0) modes.push_back("swap");
  if (parking.recomputes > 0) modes.push_back("recompute");
  const bool is_exact = parking.recomputed == Tokens(0) || parking.same_shapes;
  return {{"parks", parking.parks()},
          {"parked_ms", ms(parking.time)},
          {"modes", modes},
          {"spilled", parking.spilled},
          {"recomputed_tokens", parking.recomputed.value},
          {"exactness", is_exact ? "exact" : "recomputed"},
          {"prefix",
           {{"from", name(final.prefix_source)}, {"tokens", final.timings.prompt_cached.value}}}};
}

void add_figures(Json& reply, const FinalEvent& final) {
  reply["timings"] = timings_json(final.timings);
  reply["fermata"] = fermata_json(final);
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
