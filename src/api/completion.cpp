#include "api/completion.h"

#include "api/error.h"
#include "api/launch.h"
#include "api/sampling_fields.h"
#include "base/clock.h"
#include "base/random.h"

#include <algorithm>
#include <array>

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
  NativeFormat(const Context& context, bool return_tokens)
      : context_(context), return_tokens_(return_tokens) {}

  void begin(std::size_t, std::string&) override {}
  void token(std::size_t i, const TokenEvent& event, const Shown& shown,
             std::string& out) override {
    const std::int64_t n = ++n_[i];
    if (shown.text.empty() && !return_tokens_) return;
    out += "data: {\"index\":" + std::to_string(i) + ",\"content\":";
    append_quoted(out, shown.text);
    out += ",\"tokens\":[";
    if (return_tokens_) out += std::to_string(raw(event.token));
    out += "],\"stop\":false,\"tokens_predicted\":" + std::to_string(n) + '}';
    add_probabilities(out, shown.probabilities);
    out += "\n\n";
  }
  void end(const Outcome& outcome, const Shown& tail, std::string& out) override {
    std::string last = dump(final_json(outcome, std::string(tail.text), {}));
    add_probabilities(last, tail.probabilities);
    append_event(out, last);
  }
  void close(std::span<const Outcome>, std::string&) override {}
  void keepalive(std::string& out) override {
    out += R"(data: {"index":0,"content":"","tokens":[],"stop":false})"
           "\n\n";
  }
  // Several choices as a list of replies, like llama-server.
  std::string whole(std::span<const Outcome> choices) override {
    std::string out;
    for (const Outcome& choice : choices) {
      std::string one = dump(final_json(choice, choice.text, choice.tokens));
      add_probabilities(one, choice.probabilities);
      out += (out.empty() ? "" : ",") + one;
    }
    return choices.size() == 1 ? out : '[' + out + ']';
  }

 private:
  static void add_probabilities(std::string& out, std::string_view probabilities) {
    if (!probabilities.empty()) append_member(out, "completion_probabilities", probabilities);
  }

  Json final_json(const Outcome& outcome, const std::string& content,
                  const std::vector<TokenId>& tokens) const {
    const FinalEvent& final = outcome.final;
    const Request& request = *outcome.request;
    const Timings& timings = final.timings;
    Json settings = sampling_json(request.sampling);
    settings["n_predict"] = request.max_tokens.value;
    settings["stop"] = request.stop;
    return {{"index", outcome.index},
            {"content", content},
            {"tokens", return_tokens_ ? raw_tokens(tokens) : Json::array()},
            {"id_slot", seat_number(final)},
            {"stop", true},
            {"model", context_.model_name},
            {"tokens_predicted", timings.predicted.value},
            {"tokens_evaluated", final.prompt_tokens.value},
            {"generation_settings", settings},
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
  std::array<std::int64_t, choices_max> n_{};  // Tokens so far, by choice.
};

class OpenAiCompletionFormat final : public ReplyFormat {
 public:
  OpenAiCompletionFormat(const Context& context, bool usage)
      : context_(context),
        usage_(usage),
        id_("cmpl-" + random_alphanumeric(32)),
        created_(wall_clock_seconds()) {}

  void begin(std::size_t, std::string&) override {}
  void token(std::size_t i, const TokenEvent&, const Shown& shown, std::string& out) override {
    if (!shown.text.empty()) append_event(out, with_choices(base(), choice(i, shown, nullptr)));
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
      texts +=
          choice(one.index, {one.text, one.probabilities}, finish_reason_name(one.final.reason));
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

TokenId read_token(const Json& value, const engine::Vocabulary& vocabulary, std::string_view name) {
  const auto token = value.get<std::int64_t>();
  if (token < 0 || token >= vocabulary.size()) {
    throw bad_request(std::string(name) + ": token " + value.dump() + " is not in the vocabulary");
  }
  return TokenId{static_cast<std::int32_t>(token)};
}

std::unique_ptr<Exchange> complete(const Json& body, const Context& context,
                                   std::unique_ptr<ReplyFormat> format) {
  const Fields fields(body);
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) throw bad_request("prompt: is missing");
  Request request = read_request(fields, context);
  refuse_unsupported(fields, {{"best_of", Neutral::one},
                              {"echo", Neutral::off},
                              {"suffix", Neutral::empty_text},
                              {"lora", Neutral::empty_list},
                              {"response_format", Neutral::text_type},
                              {"response_fields", Neutral::empty_list},
                              {"return_progress", Neutral::off},
                              {"timings_per_token", Neutral::off},
                              {"grammar_lazy", Neutral::off},
                              {"grammar_triggers", Neutral::empty_list},
                              {"preserved_tokens", Neutral::empty_list}});
  request.prompt = read_prompt(*prompt, *context.vocabulary, "prompt");
  GenerationOptions options = read_generation_options(fields, context);
  options.probabilities = read_completion_probabilities(fields, request.sampling);
  return launch(context, std::move(request), read_choices(fields, context), std::move(format),
                options);
}

}  // namespace

std::vector<TokenId> read_prompt(const Json& prompt, const engine::Vocabulary& vocabulary,
                                 std::string_view name) {
  std::vector<TokenId> out;
  if (prompt.is_string()) {
    out = vocabulary.tokenize(prompt.get<std::string>(), true, true);
  } else if (prompt.is_array()) {
    bool first = true;
    for (const Json& part : prompt) {
      if (part.is_number_integer()) {
        out.push_back(read_token(part, vocabulary, name));
      } else if (part.is_string()) {
        const auto tokens = vocabulary.tokenize(part.get<std::string>(), first, true);
        out.insert(out.end(), tokens.begin(), tokens.end());
      } else {
        throw bad_request(std::string(name) + ": a list must hold texts and token ids");
      }
      first = false;
    }
    const bool texts_only =
        !prompt.empty() &&
        std::all_of(prompt.begin(), prompt.end(), [](const Json& p) { return p.is_string(); });
    if (texts_only && prompt.size() > 1) {
      throw ApiError{
          .type = ErrorType::not_supported,
          .message = std::string(name) + ": several prompts in one request are not supported yet"};
    }
  } else {
    throw bad_request(std::string(name) + ": must be a text or a list of texts and token ids");
  }
  if (out.empty() && vocabulary.special().bos) out.push_back(*vocabulary.special().bos);
  return out;
}

std::unique_ptr<Exchange> native_completion(const Json& body, const Context& context) {
  const bool return_tokens = Fields(body).boolean("return_tokens", false);
  return complete(body, context, std::make_unique<NativeFormat>(context, return_tokens));
}

std::unique_ptr<Exchange> openai_completion(const Json& body, const Context& context) {
  const bool usage = wants_usage(Fields(body));
  return complete(body, context, std::make_unique<OpenAiCompletionFormat>(context, usage));
}

}  // namespace fermata::api
