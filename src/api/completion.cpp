#include "api/completion.h"

#include "api/error.h"
#include "api/launch.h"
#include "api/prompts.h"
#include "api/response_fields.h"
#include "api/sampling_fields.h"
#include "base/clock.h"
#include "base/random.h"

#include <algorithm>
#include <utility>

namespace fermata::api {
namespace {

const char* stop_type_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::eos:
      return "eos";
    case FinishReason::word:
      return "word";
    case FinishReason::limit:
    case FinishReason::window:
      return "limit";
    case FinishReason::cancelled:
    case FinishReason::failed:
      return "none";
  }
  return "none";
}

Json raw_tokens(const std::vector<TokenId>& tokens) {
  Json out = Json::array();
  for (TokenId token : tokens) out.push_back(raw(token));
  return out;
}

std::int64_t seat_number(const FinalEvent& final) { return final.seat ? final.seat->value : -1; }

class NativeFormat final : public ReplyFormat {
 public:
  NativeFormat(const Context& context, bool return_tokens, std::vector<std::string> fields)
      : context_(context), return_tokens_(return_tokens), fields_(std::move(fields)) {}

  void begin(std::size_t, std::string&) override {}
  void progress(std::size_t i, const ProgressEvent& progress, std::string& out) override {
    out += "data: {\"index\":" + std::to_string(i) + R"(,"content":"","tokens":[])";
    append_place(out, progress.seat, 0, progress.total);
    append_member(out, "prompt_progress", dump(progress_json(progress)));
    out += "\n\n";
  }
  void token(std::size_t i, const TokenEvent& event, const Shown& shown,
             std::string& out) override {
    if (n_.size() <= i) n_.resize(i + 1);
    const std::int64_t n = ++n_[i];
    if (shown.text.empty() && !return_tokens_) return;
    out += "data: {\"index\":" + std::to_string(i) + ",\"content\":";
    append_quoted(out, shown.text);
    out += ",\"tokens\":[";
    if (return_tokens_) out += std::to_string(raw(event.token));
    out += ']';
    append_place(out, event.seat, n, shown.prompt);
    if (!shown.timings.empty()) append_member(out, "timings", shown.timings);
    add_probabilities(out, shown.probabilities);
    out += "\n\n";
  }
  void end(const Outcome& outcome, const Shown& tail, std::string& out) override {
    append_event(out, final_text(outcome, std::string(tail.text), {}, tail.probabilities));
  }
  void close(std::span<const Outcome>, std::string&) override {}
  void keepalive(std::string& out) override {
    out += R"(data: {"index":0,"content":"","tokens":[],"stop":false})"
           "\n\n";
  }
  // Several replies as a list, like llama-server.
  std::string whole(std::span<const Outcome> choices) override {
    std::string out;
    for (const Outcome& choice : choices) {
      if (!out.empty()) out += ',';
      out += final_text(choice, choice.text, choice.tokens, choice.probabilities);
    }
    return choices.size() == 1 ? out : '[' + out + ']';
  }

 private:
  // The rest of a chunk, after its tokens.
  static void append_place(std::string& out, Seat seat, std::int64_t predicted, Tokens prompt) {
    out += ",\"stop\":false,\"id_slot\":" + std::to_string(seat.value);
    out += ",\"tokens_predicted\":" + std::to_string(predicted);
    out += ",\"tokens_evaluated\":" + std::to_string(prompt.value) + '}';
  }

  static void add_probabilities(std::string& out, std::string_view probabilities) {
    if (!probabilities.empty()) append_member(out, "completion_probabilities", probabilities);
  }

  // With the fields that the client wants.
  std::string final_text(const Outcome& outcome, const std::string& content,
                         const std::vector<TokenId>& tokens, std::string_view probabilities) const {
    const Json whole = final_json(outcome, content, tokens);
    if (fields_.empty()) {
      std::string out = dump(whole);
      add_probabilities(out, probabilities);
      return out;
    }
    std::string out = dump(pick(whole, fields_));
    const bool wanted =
        std::find(fields_.begin(), fields_.end(), "completion_probabilities") != fields_.end();
    if (!wanted || probabilities.empty()) return out;
    if (out == "{}") return "{\"completion_probabilities\":" + std::string(probabilities) + '}';
    add_probabilities(out, probabilities);
    return out;
  }

  Json final_json(const Outcome& outcome, const std::string& content,
                  const std::vector<TokenId>& tokens) const {
    const FinalEvent& final = outcome.final;
    const Request& request = *outcome.request;
    const Timings& timings = final.timings;
    return {{"index", outcome.index},
            {"content", content},
            {"tokens", return_tokens_ ? raw_tokens(tokens) : Json::array()},
            {"id_slot", seat_number(final)},
            {"stop", true},
            {"model", context_.model_name},
            {"tokens_predicted", timings.predicted.value},
            {"tokens_evaluated", final.prompt_tokens.value},
            {"generation_settings", generation_settings(request)},
            {"prompt", context_.vocabulary->detokenize(request.prompt)},
            {"has_new_line", outcome.text.find('\n') != std::string::npos},
            {"truncated", final.truncated},
            {"stop_type", stop_type_name(final.reason)},
            {"stopping_word", final.stop_word},
            {"tokens_cached", (final.prompt_tokens + timings.predicted).value},
            {"timings", timings_json(timings)},
            {"fermata", fermata_json(final)}};
  }

  const Context& context_;
  bool return_tokens_;
  std::vector<std::string> fields_;
  std::vector<std::int64_t> n_;  // Tokens so far, by choice.
};

class OpenAiCompletionFormat final : public ReplyFormat {
 public:
  OpenAiCompletionFormat(const Context& context, bool usage)
      : context_(context),
        usage_(usage),
        id_("cmpl-" + random_alphanumeric(32)),
        created_(wall_clock_seconds()) {}

  void begin(std::size_t, std::string&) override {}
  void progress(std::size_t i, const ProgressEvent& progress, std::string& out) override {
    std::string chunk = with_choices(base(), choice(i, {}, nullptr));
    append_member(chunk, "prompt_progress", dump(progress_json(progress)));
    append_event(out, chunk);
  }
  void token(std::size_t i, const TokenEvent&, const Shown& shown, std::string& out) override {
    if (shown.text.empty()) return;
    std::string chunk = with_choices(base(), choice(i, shown, nullptr));
    if (!shown.timings.empty()) append_member(chunk, "timings", shown.timings);
    append_event(out, chunk);
  }
  void end(const Outcome& outcome, const Shown& tail, std::string& out) override {
    Json last = base();
    if (!usage_) add_figures(last, outcome.final);
    const std::string_view reason = finish_reason_name(outcome.final.reason);
    append_event(out, with_choices(last, choice(outcome.index, tail, reason)));
  }
  void close(std::span<const Outcome> choices, std::string& out) override {
    if (usage_) {
      const FinalEvent final = total(choices);
      Json extra = base();
      extra["choices"] = Json::array();
      extra["usage"] = usage_json(final.timings, final.prompt_tokens);
      add_figures(extra, final);
      append_event(out, dump(extra));
    }
    append_event(out, "[DONE]");
  }
  void keepalive(std::string& out) override {
    append_event(out, with_choices(base(), choice(0, {}, nullptr)));
  }
  std::string whole(std::span<const Outcome> choices) override {
    const FinalEvent final = total(choices);
    Json out = base();
    out["usage"] = usage_json(final.timings, final.prompt_tokens);
    add_figures(out, final);
    std::string texts;
    for (const Outcome& one : choices) {
      if (!texts.empty()) texts += ',';
      texts += choice(one.index, {one.text, one.probabilities, {}},
                      finish_reason_name(one.final.reason));
    }
    return with_choices(out, texts);
  }

 private:
  Json base() const {
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", context_.model_name},
            {"system_fingerprint", context_.build}};
  }
  static std::string choice(std::size_t i, const Shown& shown, const Json& finish_reason) {
    Json out = {{"text", shown.text}, {"index", i}, {"finish_reason", finish_reason}};
    if (shown.probabilities.empty()) out["logprobs"] = nullptr;
    return choice_text(out, shown.probabilities);
  }

  const Context& context_;
  bool usage_;
  std::string id_;
  std::int64_t created_;
};

std::unique_ptr<Exchange> complete(const Fields& fields, const Context& context,
                                   std::vector<std::vector<TokenId>> prompts,
                                   std::unique_ptr<ReplyFormat> format) {
  Request request = read_request(fields, context);
  constrain_to_format(fields, context, request.sampling);
  refuse_unsupported(fields, {{"best_of", Neutral::one},
                              {"echo", Neutral::off},
                              {"suffix", Neutral::empty_text},
                              {"lora", Neutral::empty_list},
                              {"grammar_lazy", Neutral::off},
                              {"grammar_triggers", Neutral::empty_list},
                              {"preserved_tokens", Neutral::empty_list}});
  GenerationOptions options = read_generation_options(fields, context);
  options.probabilities = read_completion_probabilities(fields, request.sampling);
  return launch(context, std::move(request), std::move(prompts), read_choices(fields, context),
                std::move(format), options);
}

std::vector<std::vector<TokenId>> prompts_of(const Fields& fields, const Context& context) {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) throw bad_request("prompt: is missing");
  return read_prompts(*prompt, *context.vocabulary);
}

}  // namespace

std::unique_ptr<Exchange> native_completion(const Fields& fields, const Context& context,
                                            std::vector<std::vector<TokenId>> prompts) {
  const bool return_tokens = fields.boolean("return_tokens", false);
  return complete(
      fields, context, std::move(prompts),
      std::make_unique<NativeFormat>(context, return_tokens, read_response_fields(fields)));
}

std::unique_ptr<Exchange> native_completion(const Json& body, const Context& context) {
  const Fields fields(body);
  return native_completion(fields, context, prompts_of(fields, context));
}

std::unique_ptr<Exchange> openai_completion(const Json& body, const Context& context) {
  const Fields fields(body);
  return complete(fields, context, prompts_of(fields, context),
                  std::make_unique<OpenAiCompletionFormat>(context, wants_usage(fields)));
}

}  // namespace fermata::api
