#include "api/launch.h"

#include "api/accepted.h"
#include "api/conversation.h"
#include "api/error.h"
#include "api/sampling_fields.h"
#include "base/check.h"

#include <algorithm>
#include <atomic>
#include <limits>

namespace fermata::api {
namespace {

constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t stop_words_max = 64;
constexpr std::size_t stop_word_bytes_max = 1024;
constexpr std::int64_t priority_max = 1000;

RequestId next_id() {
  static std::atomic<std::uint64_t> last{0};
  return RequestId(last.fetch_add(1, std::memory_order_relaxed) + 1);
}

std::vector<std::string> read_stop(const Fields& fields, const Context& context) {
  std::vector<std::string> out =
      fields.strings("stop", context.settings->sampling.reverse_prompts, stop_words_max);
  // An empty stop word would end every reply before it began; like llama-server it counts as none.
  std::erase_if(out, [](const std::string& word) { return word.empty(); });
  for (const std::string& word : out) {
    if (word.size() > stop_word_bytes_max) {
      throw bad_request("stop: a word is longer than " + std::to_string(stop_word_bytes_max) +
                        " bytes");
    }
  }
  return out;
}

// A client that gave a schema knows nothing of a grammar and its lines.
ApiError bad_sampling(const SamplingParams& params, const engine::SamplerFault& fault) {
  if (fault.field == "grammar" && params.grammar_origin == GrammarOrigin::json_schema) {
    return bad_request("json_schema: its grammar cannot be used (" + fault.message + ")");
  }
  if (fault.field == "grammar" && params.grammar_origin == GrammarOrigin::tool_calls) {
    return bad_request("tools: their grammar cannot be used (" + fault.message + ")");
  }
  return bad_request(fault.message);
}

bool is_neutral(const Fields& fields, std::string_view name, Neutral neutral) {
  const Json& value = *fields.find(name);
  switch (neutral) {
    case Neutral::off:
      return !fields.boolean(name, false);
    case Neutral::zero:
      return fields.integer(name, 0, 0, int_max) == 0;
    case Neutral::one:
      return fields.integer(name, 1, 1, int_max) == 1;
    case Neutral::empty_list:
      if (!value.is_array()) throw bad_request(std::string(name) + ": must be a list");
      return value.empty();
    case Neutral::empty_text:
      return fields.string(name, "").empty();
  }
  FERMATA_CHECK(false, "a kind of neutral value that does not exist");
}

// The request's seed becomes the one that was drawn.
scheduler::Submission make_submission(const Context& context, Request& request) {
  scheduler::Submission out;
  if (request.max_tokens != Tokens(0)) {
    auto sampler = context.vocabulary->make_sampler(request.sampling, request.prompt);
    if (!sampler) throw bad_sampling(request.sampling, sampler.error());
    out.sampler = std::move(sampler).value();
    request.sampling.seed = out.sampler->seed();
  }
  out.request = std::make_shared<const Request>(request);
  out.channel = context.scheduler->open_channel();
  return out;
}

void submit(const Context& context, std::vector<scheduler::Submission>& submissions) {
  check_accepted(context.scheduler->submit(submissions), ErrorType::rate_limit,
                 "too many requests are waiting; try again later",
                 context.scheduler->retry_after_seconds());
}

// What the scheduler would refuse is told before anything is queued.
void check_prompts(const Context& context, const std::vector<std::vector<TokenId>>& prompts,
                   std::size_t choices) {
  const std::size_t replies = prompts.size() * choices;
  if (replies > replies_max) {
    throw bad_request("prompt: more than " + std::to_string(replies_max) +
                      " replies, prompts times n");
  }
  if (static_cast<std::int64_t>(replies) > context.settings->limits.queue_max) {
    throw bad_request("prompt: more replies than --queue-max lets wait");
  }
  const Tokens window = context.scheduler->status().limits().window;
  for (const std::vector<TokenId>& prompt : prompts) {
    if (prompt.empty()) throw bad_request("the prompt is empty");
    const Tokens length{static_cast<std::int64_t>(prompt.size())};
    if (length >= window) throw exceeds_context(length, window);
  }
}

}  // namespace

Tokens read_max_tokens(const Fields& fields, const Context& context) {
  std::int64_t out = context.settings->batch.n_predict.value;
  // Later names win: the native one is the most particular.
  for (const char* name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    out = fields.integer(name, out, -2, int_max);
  }
  return Tokens(std::max<std::int64_t>(out, -1));
}

Request read_request(const Fields& fields, const Context& context) {
  const Tokens window = context.scheduler->status().limits().window;
  Request out;
  out.id = next_id();
  out.owner = context.owner;
  out.conversation = read_conversation(fields);
  out.max_tokens = read_max_tokens(fields, context);
  out.stop = read_stop(fields, context);
  out.cache_prompt = fields.boolean("cache_prompt", context.settings->server.cache_prompt);
  const std::int64_t seat = fields.integer("id_slot", -1, -1, int_max);
  if (seat >= context.scheduler->status().limits().seats) {
    throw bad_request("id_slot: Invalid slot ID");
  }
  if (seat >= 0) out.seat = Seat(static_cast<std::int32_t>(seat));
  const std::int64_t most_ms = fields.integer("t_max_predict_ms", -1, -1, int_max);
  if (most_ms > 0) out.predict_time_max = Micros(most_ms * 1000);
  out.n_indent = static_cast<std::int32_t>(fields.integer("n_indent", 0, 0, int_max));
  out.n_keep = Tokens(fields.integer("n_keep", context.settings->batch.n_keep.value, -1, int_max));
  out.n_discard =
      Tokens(std::max<std::int64_t>(fields.integer("n_discard", 0, -int_max, int_max), 0));
  refuse_unsupported(fields, {{"n_cache_reuse", Neutral::zero}});
  out.special = context.settings->sampling.special;
  const bool stream = fields.boolean("stream", false);
  out.wants_progress = fields.boolean("return_progress", false) && stream;
  out.wants_timings = fields.boolean("timings_per_token", false) && stream;
  out.priority =
      static_cast<std::int32_t>(fields.integer("priority", 0, -priority_max, priority_max));
  out.sampling = read_sampling(fields, context, window);
  return out;
}

std::size_t read_choices(const Fields& fields, const Context& context) {
  std::int64_t out = 1;
  for (const char* name : {"n", "n_cmpl"}) {
    out = fields.integer(name, out, 1, static_cast<std::int64_t>(choices_max));
    if (out > context.scheduler->status().limits().seats) {
      throw bad_request(std::string(name) +
                        ": n_cmpl cannot be greater than the number of slots, please increase -np");
    }
    if (out > context.settings->limits.queue_max) {
      throw bad_request(std::string(name) + ": more choices than --queue-max lets wait");
    }
  }
  return static_cast<std::size_t>(out);
}

GenerationOptions read_generation_options(const Fields& fields, const Context& context) {
  GenerationOptions out;
  out.stream = fields.boolean("stream", false);
  static_cast<void>(wants_usage(fields));  // Checked where the flavour has no use for it, too.
  out.ping_interval_s = static_cast<int>(fields.integer(
      "sse_ping_interval", context.settings->server.sse_ping_interval_s, -1, 86'400));
  out.ping_chunks = context.settings->server.keepalive == "chunk";
  return out;
}

bool wants_usage(const Fields& fields) {
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return false;
  if (!options->is_object()) throw bad_request("stream_options: must be an object");
  return Fields(*options, "stream_options.").boolean("include_usage", false);
}

void refuse_unsupported(const Fields& fields, std::initializer_list<Unsupported> unsupported) {
  for (const auto& [name, neutral] : unsupported) {
    if (!fields.has(name) || is_neutral(fields, name, neutral)) continue;
    throw ApiError{.type = ErrorType::not_supported,
                   .message = std::string(name) + " is not supported yet"};
  }
}

std::unique_ptr<Exchange> launch(const Context& context, Request request, std::size_t choices,
                                 std::unique_ptr<ReplyFormat> format,
                                 const GenerationOptions& options) {
  std::vector<std::vector<TokenId>> prompts;
  prompts.push_back(std::move(request.prompt));
  return launch(context, std::move(request), std::move(prompts), choices, std::move(format),
                options);
}

std::unique_ptr<Exchange> launch(const Context& context, Request request,
                                 std::vector<std::vector<TokenId>> prompts, std::size_t choices,
                                 std::unique_ptr<ReplyFormat> format,
                                 const GenerationOptions& options) {
  check_prompts(context, prompts, choices);
  if (choices > 1 && request.seat) throw bad_request("id_slot: several choices need several slots");
  const std::uint32_t seed = request.sampling.seed;
  std::vector<scheduler::Submission> submissions;
  std::vector<Started> started;
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    request.prompt = std::move(prompts[p]);
    request.sampling.seed = seed;
    if (p > 0) request.id = next_id();
    if (choices > 1) request.group = GroupId(request.id.value);
    for (std::size_t i = 0; i < choices; ++i) {
      if (i > 0) {
        request.id = next_id();
        request.sampling.seed = (request.sampling.seed + 1) % seed_random;
      }
      submissions.push_back(make_submission(context, request));
      started.push_back({p, submissions.back().request, submissions.back().channel});
    }
  }
  submit(context, submissions);
  return generation_exchange(std::move(started), *context.vocabulary, std::move(format), options);
}

}  // namespace fermata::api
