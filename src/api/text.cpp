#include "api/text.h"

#include "api/error.h"
#include "api/prompts.h"
#include "core/utf8.h"

namespace fermata::api {
namespace {

// A piece that is no whole character is shown as its bytes.
Json piece_json(std::string_view piece) {
  if (is_valid_utf8(piece)) return Json(piece);
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

}  // namespace

std::unique_ptr<Exchange> tokenize(const Json& body, const Context& context) {
  const Fields fields(body);
  const bool add_special = fields.boolean("add_special", false);
  const bool parse_special = fields.boolean("parse_special", true);
  const bool with_pieces = fields.boolean("with_pieces", false);
  std::vector<TokenId> tokens;
  if (const Json* content = fields.find("content")) {
    tokens = read_tokens(*content, *context.vocabulary, {add_special, parse_special}, "content");
  }
  Json out = Json::array();
  for (TokenId token : tokens) {
    if (with_pieces) {
      out.push_back({{"id", raw(token)},
                     {"piece", piece_json(context.vocabulary->piece_with_special(token))}});
    } else {
      out.push_back(raw(token));
    }
  }
  return ready_exchange(Head{}, dump({{"tokens", out}}));
}

std::unique_ptr<Exchange> detokenize(const Json& body, const Context& context) {
  const Fields fields(body);
  const Json* tokens = fields.find("tokens");
  if (tokens == nullptr) return ready_exchange(Head{}, dump({{"content", ""}}));
  if (!tokens->is_array()) throw bad_request("tokens: must be a list of token ids");
  std::vector<TokenId> ids;
  for (const Json& token : *tokens) {
    const auto id = token.is_number_integer() ? token.get<std::int64_t>() : -1;
    if (id < 0 || id >= context.vocabulary->size()) {
      throw bad_request("tokens: " + dump(token) + " is not a token of the vocabulary");
    }
    ids.push_back(TokenId{static_cast<std::int32_t>(id)});
  }
  const std::string text = replace_invalid_utf8(context.vocabulary->detokenize(ids));
  return ready_exchange(Head{}, dump({{"content", text}}));
}

}  // namespace fermata::api
