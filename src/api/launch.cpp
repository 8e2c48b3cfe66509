#include "api/launch.h"

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

Tokens read_max_tokens(const Fields& fields, const Context& context) {
  std::int64_t out = context.settings->batch.n_predict.value;
  // Later names win: the native one is the most particular.
  for (const char* name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    out = fields.integer(name, out, -2, int_max);
  }
  return Tokens(std::max<std::int64_t>(out, -1));
}

std::vector<std::string> read_stop(const Fields& fields) {
  std::vector<std::string> out = fields.strings("stop", {}, stop_words_max);
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
  const bool of_schema =
      fault.field == "grammar" && params.grammar_origin == GrammarOrigin::json_schema;
  return bad_request(of_schema ? "json_schema: its grammar cannot be used (" + fault.message + ")"
                               : fault.message);
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
    case Neutral::text_type:
      if (!value.is_object()) throw bad_request(std::string(name) + ": must be an object");
      return Fields(value).string("type", "") == "text";
  }
  FERMATA_CHECK(false, "a kind of neutral value that does not exist");
}

}  // namespace

Request read_request(const Fields& fields, const Context& context) {
  const Tokens window = context.scheduler->status().limits().window;
  Request out;
  out.id = next_id();
  out.max_tokens = read_max_tokens(fields, context);
  out.stop = read_stop(fields);
  out.cache_prompt = fields.boolean("cache_prompt", context.settings->server.cache_prompt);
  const std::int64_t seat = fields.integer("id_slot", -1, -1, int_max);
  if (seat >= context.scheduler->status().limits().seats) {
    throw bad_request("id_slot: Invalid slot ID");
  }
  if (seat >= 0) out.seat = Seat(static_cast<std::int32_t>(seat));
  const std::int64_t most_ms = fields.integer("t_max_predict_ms", -1, -1, int_max);
  if (most_ms > 0) out.predict_time_max = Micros(most_ms * 1000);
  out.priority =
      static_cast<std::int32_t>(fields.integer("priority", 0, -priority_max, priority_max));
  out.sampling = read_sampling(fields, context, window);
  return out;
}

GenerationOptions read_generation_options(const Fields& fields, const Context& context) {
  GenerationOptions out;
  out.stream = fields.boolean("stream", false);
  out.ping_interval_s = static_cast<int>(fields.integer(
      "sse_ping_interval", context.settings->server.sse_ping_interval_s, -1, 86'400));
  out.ping_chunks = context.settings->server.keepalive == "chunk";
  return out;
}

bool wants_usage(const Fields& fields) {
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return false;
  if (!options->is_object()) throw bad_request("stream_options: must be an object");
  return Fields(*options).boolean("include_usage", false);
}

void refuse_unsupported(const Fields& fields, std::initializer_list<Unsupported> unsupported) {
  for (const auto& [name, neutral] : unsupported) {
    if (!fields.has(name) || is_neutral(fields, name, neutral)) continue;
    throw ApiError{.type = ErrorType::not_supported,
                   .message = std::string(name) + " is not supported yet"};
  }
}

std::unique_ptr<Exchange> launch(const Context& context, Request request,
                                 std::unique_ptr<ReplyFormat> format,
                                 const GenerationOptions& options) {
  if (request.prompt.empty()) throw bad_request("the prompt is empty");
  const Tokens length{static_cast<std::int64_t>(request.prompt.size())};
  const Tokens window = context.scheduler->status().limits().window;
  if (length >= window) throw exceeds_context(length, window);

  scheduler::Submission submission;
  if (request.max_tokens != Tokens(0)) {
    auto sampler = context.vocabulary->make_sampler(request.sampling, request.prompt);
    if (!sampler) throw bad_sampling(request.sampling, sampler.error());
    submission.sampler = std::move(sampler).value();
    request.sampling.seed = submission.sampler->seed();
  }
  const auto shared = std::make_shared<const Request>(std::move(request));
  submission.request = shared;
  submission.channel = context.scheduler->open_channel();
  const auto channel = submission.channel;
  switch (context.scheduler->submit(submission)) {
    case scheduler::SubmitOutcome::accepted:
      break;
    case scheduler::SubmitOutcome::queue_full:
      throw ApiError{.type = ErrorType::rate_limit,
                     .message = "too many requests are waiting; try again later",
                     .retry_after_s = context.scheduler->retry_after_seconds()};
    case scheduler::SubmitOutcome::stopping:
      throw ApiError{.type = ErrorType::unavailable,
                     .message = "the server is shutting down",
                     .retry_after_s = 1};
  }
  return generation_exchange(shared, channel, *context.vocabulary, std::move(format), options);
}

}  // namespace fermata::api
