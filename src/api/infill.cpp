#include "api/infill.h"

#include "api/completion.h"
#include "api/launch.h"
#include "api/prompts.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fermata::api {
namespace {

constexpr std::size_t extra_max = 1024;
// Begin of text, three marks, and a token to generate.
constexpr Tokens around{5};

void append(std::vector<TokenId>& out, const std::vector<TokenId>& more) {
  out.insert(out.end(), more.begin(), more.end());
}

std::size_t count(Tokens tokens) {
  return static_cast<std::size_t>(std::max<std::int64_t>(tokens.value, 0));
}

void check_marks(const engine::SpecialTokens& special) {
  std::string missing;
  if (!special.fim_prefix) missing += "prefix token is missing. ";
  if (!special.fim_suffix) missing += "suffix token is missing. ";
  if (!special.fim_middle) missing += "middle token is missing. ";
  if (missing.empty()) return;
  throw ApiError{.type = ErrorType::not_supported,
                 .message = "Infill is not supported by this model: " + missing};
}

std::vector<TokenId> read_part(const Fields& fields, std::string_view name,
                               const engine::Vocabulary& vocabulary) {
  const Json* value = fields.find(name);
  if (value == nullptr) throw bad_request(std::string(name) + ": is missing");
  return read_tokens(*value, vocabulary, {.add_special = false, .parse_special = false}, name);
}

void append_file(const Json& chunk, const std::string& where, const engine::Vocabulary& vocabulary,
                 std::vector<TokenId>& out) {
  if (!chunk.is_object()) throw bad_request(where + ": must be an object with a text");
  const Fields fields(chunk, where + ".");
  if (!fields.has("text")) throw bad_request(where + ".text: is missing");
  const std::string text = fields.string("text", "");
  const std::string name = fields.string("filename", "tmp");
  const auto& separator = vocabulary.special().fim_separator;
  if (separator) out.push_back(*separator);
  append(out,
         vocabulary.tokenize(separator ? name + '\n' : "\n\n--- snippet ---\n\n", false, false));
  append(out, vocabulary.tokenize(text, false, false));
}

// Other files, and the name of the one to fill, between the marks that the vocabulary has.
std::vector<TokenId> read_extra(const Fields& fields, const engine::Vocabulary& vocabulary) {
  const engine::SpecialTokens& special = vocabulary.special();
  std::vector<TokenId> out;
  if (special.fim_repository) {
    out.push_back(*special.fim_repository);
    append(out, vocabulary.tokenize("myproject\n", false, false));
  }
  if (const Json* extra = fields.find("input_extra")) {
    if (!extra->is_array()) {
      throw bad_request(
          "input_extra: must be an array of {\"filename\": string, \"text\": string}");
    }
    if (extra->size() > extra_max) {
      throw bad_request("input_extra: more than " + std::to_string(extra_max) + " entries");
    }
    for (std::size_t i = 0; i < extra->size(); ++i) {
      append_file((*extra)[i], "input_extra[" + std::to_string(i) + "]", vocabulary, out);
    }
  }
  if (special.fim_separator) {
    out.push_back(*special.fim_separator);
    append(out, vocabulary.tokenize("filename\n", false, false));
  }
  return out;
}

// llama-server fills a batch with the parts and the rest of the window with other files; here a
// batch is never more than the window leaves beside the reply.
InfillLimits limits_of(const Fields& fields, const Context& context) {
  const settings::BatchSettings& batch = context.settings->batch;
  const Tokens window = context.scheduler->status().limits().window;
  const Tokens reply = std::max(read_max_tokens(fields, context), Tokens(0));
  const Tokens room = std::max(window - reply - around, Tokens(0));
  InfillLimits out;
  out.batch = std::min(batch.n_batch, room);
  out.extra = std::max(room - batch.n_batch - reply, Tokens(0));
  out.suffix_first = batch.spm_infill;
  return out;
}

}  // namespace

std::vector<TokenId> infill_prompt(const engine::SpecialTokens& special, InfillParts parts,
                                   const InfillLimits& limits) {
  const Tokens quarter = limits.batch / 4;
  const Tokens prompt{static_cast<std::int64_t>(parts.prompt.size())};
  const std::size_t prefix_take = std::min(parts.prefix.size(), count(quarter * 3));
  const std::size_t suffix_take =
      std::min(parts.suffix.size(), count(quarter - Tokens(2) - prompt));
  const std::size_t extra_take = std::min(parts.extra.size(), count(limits.extra));

  std::vector<TokenId> prefix{*special.fim_prefix};
  prefix.insert(prefix.end(), parts.prefix.end() - static_cast<std::ptrdiff_t>(prefix_take),
                parts.prefix.end());
  append(prefix, parts.prompt);
  parts.suffix.resize(suffix_take);
  std::vector<TokenId> suffix{*special.fim_suffix};
  append(suffix, parts.suffix);

  std::vector<TokenId> out(parts.extra.end() - static_cast<std::ptrdiff_t>(extra_take),
                           parts.extra.end());
  if (special.adds_bos && special.bos) out.push_back(*special.bos);
  append(out, limits.suffix_first ? suffix : prefix);
  append(out, limits.suffix_first ? prefix : suffix);
  out.push_back(*special.fim_middle);
  return out;
}

std::unique_ptr<Exchange> infill(const Json& body, const Context& context) {
  const engine::Vocabulary& vocabulary = *context.vocabulary;
  check_marks(vocabulary.special());
  const Fields fields(body);
  InfillParts parts;
  parts.prefix = read_part(fields, "input_prefix", vocabulary);
  parts.suffix = read_part(fields, "input_suffix", vocabulary);
  parts.prompt = vocabulary.tokenize(fields.string("prompt", ""), false, true);
  parts.extra = read_extra(fields, vocabulary);
  std::vector<std::vector<TokenId>> prompts;
  prompts.push_back(
      infill_prompt(vocabulary.special(), std::move(parts), limits_of(fields, context)));
  return native_completion(fields, context, std::move(prompts));
}

}  // namespace fermata::api
