#include "api/embeddings.h"

#include "api/accepted.h"
#include "api/error.h"
#include "api/prompts.h"
#include "scheduler/embeddings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace fermata::api {
namespace {

constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t inputs_max = 2048;                    // As OpenAI.
constexpr std::int64_t values_max = std::int64_t{1} << 24;  // Of all vectors of a reply.

enum class Shape : std::uint8_t { native, openai };

struct Wording {
  Shape shape = Shape::native;
  bool as_base64 = false;
  std::int64_t normalize = 2;  // Where a text becomes one vector.
  bool is_pooled = false;
  std::string model;
  std::int64_t tokens = 0;  // Of all texts.
};

void append_numbers(std::string& out, const engine::Vector& vector) {
  out += '[';
  std::array<char, 32> digits{};
  for (const float value : vector) {
    if (out.back() != '[') out += ',';
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out.append(digits.data(), end);
  }
  out += ']';
}

std::string native_text(const std::vector<engine::TextVectors>& texts) {
  std::string out = "[";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ',';
    out += "{\"index\":" + std::to_string(i) + ",\"embedding\":[";
    for (const engine::Vector& vector : texts[i]) {
      if (out.back() != '[') out += ',';
      append_numbers(out, vector);
    }
    out += "]}";
  }
  return out + ']';
}

std::string openai_text(const Wording& wording, const std::vector<engine::TextVectors>& texts) {
  std::string data = "[";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) data += ',';
    data += "{\"embedding\":";
    const engine::Vector& vector = texts[i].front();
    if (wording.as_base64) {
      data += '"' + base64_of(vector) + '"';
    } else {
      append_numbers(data, vector);
    }
    data += ",\"index\":" + std::to_string(i) + ",\"object\":\"embedding\"";
    if (wording.as_base64) data += ",\"encoding_format\":\"base64\"";
    data += '}';
  }
  data += ']';
  const Json usage = {{"prompt_tokens", wording.tokens}, {"total_tokens", wording.tokens}};
  std::string out = dump({{"model", wording.model}, {"object", "list"}, {"usage", usage}});
  append_member(out, "data", data);
  return out;
}

ApiError error_of(scheduler::EmbedEnd end) {
  if (end == scheduler::EmbedEnd::stopping) return stopping();
  return {.type = ErrorType::server,
          .message = "the library failed while computing this request; try it again"};
}

// Waits for the vectors without holding a thread. A client that leaves takes its texts along.
class EmbeddingExchange final : public Exchange {
 public:
  EmbeddingExchange(Wording wording, std::shared_ptr<scheduler::EmbedReply> reply)
      : wording_(std::move(wording)), reply_(std::move(reply)) {}
  ~EmbeddingExchange() override { reply_->abandon(); }
  EmbeddingExchange(const EmbeddingExchange&) = delete;
  EmbeddingExchange& operator=(const EmbeddingExchange&) = delete;

  Piece pull() override {
    auto result = reply_->take();
    if (!result) return {};
    if (result->end != scheduler::EmbedEnd::done) {
      return error_exchange(error_of(result->end))->pull();
    }
    for (engine::TextVectors& text : result->vectors) {
      if (wording_.is_pooled) normalize(text.front(), wording_.normalize);
    }
    const bool is_native = wording_.shape == Shape::native;
    return {
        .head = Head{},
        .body = is_native ? native_text(result->vectors) : openai_text(wording_, result->vectors),
        .done = true};
  }
  void wake_with(std::function<void()> wake) override { reply_->wake_with(std::move(wake)); }
  std::string_view ping() const override { return {}; }
  int ping_interval_seconds() const override { return 0; }

 private:
  const Wording wording_;
  const std::shared_ptr<scheduler::EmbedReply> reply_;
};

// In llama-server's words.
void check_lengths(const std::vector<std::vector<TokenId>>& texts,
                   const engine::Embedder& embedder) {
  const engine::EmbedderLimits& limits = embedder.limits();
  std::int64_t vectors = 0;
  for (const std::vector<TokenId>& text : texts) {
    const Tokens length{static_cast<std::int64_t>(text.size())};
    vectors += embedder.pooling() == engine::Pooling::none ? length.value : 1;
    if (length <= limits.text) continue;
    if (limits.text > limits.together) {
      throw ApiError{.type = ErrorType::exceed_context,
                     .message = fmt::format(
                         "input ({} tokens) is larger than the max context size ({} tokens)",
                         length.value, limits.text.value),
                     .prompt_tokens = length,
                     .window = limits.text};
    }
    throw bad_request(
        fmt::format("input ({} tokens) is too large to process. increase the physical batch size "
                    "(current batch "
                    "size: {})",
                    length.value, limits.text.value));
  }
  if (vectors * limits.width > values_max) {
    throw bad_request("input: its vectors have " + std::to_string(vectors * limits.width) +
                      " values, at most " + std::to_string(values_max) + " are given at once");
  }
}

bool wants_base64(const Fields& fields) {
  const std::string format = fields.string("encoding_format", "float");
  if (format != "float" && format != "base64") {
    throw bad_request(
        "encoding_format: The format to return the embeddings in. Can be either float or base64");
  }
  return format == "base64";
}

std::unique_ptr<Exchange> submit(const Context& context, Wording wording, scheduler::EmbedJob job) {
  job.reply = std::make_shared<scheduler::EmbedReply>();
  auto exchange = std::make_unique<EmbeddingExchange>(std::move(wording), job.reply);
  check_accepted(context.scheduler->embed(job), ErrorType::rate_limit,
                 "too many requests are waiting; try again later",
                 context.scheduler->retry_after_seconds());
  return exchange;
}

std::unique_ptr<Exchange> embeddings(const Json& body, const Context& context, Shape shape) {
  if (context.embedder == nullptr) {
    throw ApiError{
        .type = ErrorType::not_supported,
        .message = "This server does not support embeddings. Start it with `--embeddings`"};
  }
  const Fields fields(body);
  Wording wording;
  wording.shape = shape;
  wording.is_pooled = context.embedder->pooling() != engine::Pooling::none;
  if (shape == Shape::openai && !wording.is_pooled) {
    throw bad_request(
        "Pooling type 'none' is not OAI compatible. Please use a different pooling type");
  }
  const char* name = "input";
  const Json* input = fields.find(name);
  if (input == nullptr) {
    // Like llama-server: who says it so wants its own shape.
    name = "content";
    input = fields.find(name);
    wording.shape = Shape::native;
  }
  if (input == nullptr) throw bad_request("input: \"input\" or \"content\" must be provided");
  wording.as_base64 = wants_base64(fields);
  wording.normalize =
      fields.integer("embd_normalize", context.settings->embedding.normalize, -1, int_max);
  // Vectors are as long as the model makes them, whatever is asked for; as with llama-server.
  static_cast<void>(fields.integer("dimensions", 1, 1, int_max));
  wording.model = fields.string("model", context.model_name);
  static_cast<void>(fields.string("user", ""));
  scheduler::EmbedJob job;
  job.texts = read_prompts(*input, *context.vocabulary, {name, inputs_max});
  check_lengths(job.texts, *context.embedder);
  for (const auto& text : job.texts) wording.tokens += static_cast<std::int64_t>(text.size());
  return submit(context, std::move(wording), std::move(job));
}

}  // namespace

std::unique_ptr<Exchange> native_embeddings(const Json& body, const Context& context) {
  return embeddings(body, context, Shape::native);
}

std::unique_ptr<Exchange> openai_embeddings(const Json& body, const Context& context) {
  return embeddings(body, context, Shape::openai);
}

void normalize(engine::Vector& vector, std::int64_t how) {
  if (how < 0) return;
  double norm = 0.0;
  for (const float value : vector) {
    const double size = std::abs(static_cast<double>(value));
    if (how == 0) {
      norm = std::max(norm, size / 32760.0);
    } else {
      norm += how == 1 ? size : std::pow(size, static_cast<double>(how));
    }
  }
  if (how > 1) norm = std::pow(norm, 1.0 / static_cast<double>(how));
  const double factor = norm > 0.0 && std::isfinite(norm) ? 1.0 / norm : 0.0;
  for (float& value : vector) value = static_cast<float>(value * factor);
}

std::string base64_of(const engine::Vector& vector) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto bytes = std::as_bytes(std::span(vector));
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = i; j < i + 3; ++j) {
      group = group << 8U | (j < bytes.size() ? std::to_integer<std::uint32_t>(bytes[j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      const bool is_padding = i + j > bytes.size();
      out += is_padding ? '=' : digits[group >> (18U - 6U * j) & 63U];
    }
  }
  return out;
}

}  // namespace fermata::api
