#include "engine/llama/vocabulary.h"

#include "base/check.h"
#include "base/log.h"
#include "core/utf8.h"
#include "engine/llama/deep_stack.h"
#include "engine/llama/log_sink.h"
#include "engine/llama/model_file.h"
#include "engine/llama/sampler.h"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>

namespace fermata::engine::llama {
namespace {

// The library counts bytes and tokens in 32 bits.
constexpr std::size_t text_bytes_max = std::size_t{1} << 30;

std::optional<TokenId> known(llama_token token) {
  if (token < 0) return std::nullopt;
  return TokenId{token};
}

SpecialTokens special_of(const llama_vocab* vocab) {
  return SpecialTokens{
      .bos = known(llama_vocab_bos(vocab)),
      .eos = known(llama_vocab_eos(vocab)),
      .eot = known(llama_vocab_eot(vocab)),
      .sep = known(llama_vocab_sep(vocab)),
      .pad = known(llama_vocab_pad(vocab)),
      .fim_prefix = known(llama_vocab_fim_pre(vocab)),
      .fim_suffix = known(llama_vocab_fim_suf(vocab)),
      .fim_middle = known(llama_vocab_fim_mid(vocab)),
      .fim_repository = known(llama_vocab_fim_rep(vocab)),
      .fim_separator = known(llama_vocab_fim_sep(vocab)),
      .adds_bos = llama_vocab_get_add_bos(vocab),
  };
}

// Appends the tokens of `text`. Throws what the library throws.
void append_tokens(const llama_vocab* vocab, std::string_view text, bool add_special,
                   bool parse_special, std::vector<TokenId>& out) {
  // A token takes at least one byte, but for the few that the model adds.
  std::vector<llama_token> tokens(text.size() + 8);
  const auto tokenize = [&] {
    return llama_tokenize(vocab, text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                          static_cast<std::int32_t>(tokens.size()), add_special, parse_special);
  };
  std::int32_t count = tokenize();
  if (count < 0 && count != std::numeric_limits<std::int32_t>::min()) {
    tokens.resize(static_cast<std::size_t>(-count));
    count = tokenize();
  }
  if (count < 0) throw std::length_error("more tokens than the library can count");
  for (std::int32_t i = 0; i < count; ++i) {
    out.push_back(TokenId{tokens[static_cast<std::size_t>(i)]});
  }
}

}  // namespace

PieceTable::PieceTable(const llama_vocab* vocab, bool special) {
  const std::int32_t size = llama_vocab_n_tokens(vocab);
  ends_.reserve(static_cast<std::size_t>(size));
  std::vector<char> buffer(256);
  for (llama_token token = 0; token < size; ++token) {
    const auto write = [&] {
      return llama_token_to_piece(vocab, token, buffer.data(),
                                  static_cast<std::int32_t>(buffer.size()), 0, special);
    };
    std::int32_t length = write();
    if (length < 0) {
      buffer.resize(static_cast<std::size_t>(-length));
      length = write();
    }
    bytes_.append(buffer.data(), static_cast<std::size_t>(std::max(0, length)));
    ends_.push_back(bytes_.size());
  }
}

std::string_view PieceTable::operator[](TokenId token) const {
  const auto at = static_cast<std::size_t>(raw(token));
  FERMATA_CHECK(raw(token) >= 0 && at < ends_.size(), "no such token");
  const std::size_t begin = at == 0 ? 0 : ends_[at - 1];
  return std::string_view(bytes_).substr(begin, ends_[at] - begin);
}

Result<std::unique_ptr<Vocabulary>, LoadFault> LlamaVocabulary::load(
    const std::string& path, const std::string& chat_template) {
  const auto file = ModelFile::open(path);
  if (!file) return Err{LoadFault{file.error()}};
  const LibraryErrors errors;
  try {
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
    if (!model) {
      return Err{LoadFault{"cannot load the vocabulary of '" + path +
                           "': " + errors.reason("the library gives no reason")}};
    }
    if (llama_vocab_type(llama_model_get_vocab(model.get())) == LLAMA_VOCAB_TYPE_NONE) {
      return Err{LoadFault{"'" + path + "' has no vocabulary; load a model that generates text"}};
    }
    auto chat = ChatTemplate::make(model.get(), chat_template);
    if (!chat) return Err{LoadFault{"the chat template of '" + path + "': " + chat.error()}};
    return std::unique_ptr<Vocabulary>(
        new LlamaVocabulary(std::move(model), std::move(chat).value()));
  } catch (const std::exception& e) {
    return Err{LoadFault{"cannot load the vocabulary of '" + path + "': " + e.what()}};
  }
}

LlamaVocabulary::LlamaVocabulary(llama_model_ptr model, ChatTemplate chat)
    : model_(std::move(model)),
      size_(llama_vocab_n_tokens(vocab())),
      special_(special_of(vocab())),
      pieces_(vocab(), false),
      pieces_with_special_(vocab(), true),
      chat_(std::move(chat)) {}

bool LlamaVocabulary::ends_generation(TokenId token) const {
  FERMATA_CHECK(raw(token) >= 0 && raw(token) < size_, "no such token");
  return llama_vocab_is_eog(vocab(), raw(token));
}

void LlamaVocabulary::append_text(std::string_view text, std::size_t piece_bytes, bool add_special,
                                  bool parse_special, std::vector<TokenId>& out) const {
  const std::vector<std::string_view> pieces = matchable_pieces(text, piece_bytes);
  if (pieces.size() == 1) return append_tokens(vocab(), text, add_special, parse_special, out);
  // What belongs to the beginning and the end of a text goes around all its pieces.
  if (add_special && special_.adds_bos && special_.bos) out.push_back(*special_.bos);
  for (const std::string_view piece : pieces) {
    append_tokens(vocab(), piece, false, parse_special, out);
  }
  if (add_special && special_.eos && llama_vocab_get_add_eos(vocab())) {
    out.push_back(*special_.eos);
  }
}

std::vector<TokenId> LlamaVocabulary::tokenize(std::string_view text, bool add_special,
                                               bool parse_special) const {
  if (!is_valid_utf8(text)) {
    // The library throws at some byte sequences and reads others in ways of its own.
    return tokenize(replace_invalid_utf8(text), add_special, parse_special);
  }
  std::vector<TokenId> out;
  const auto append = [&](std::size_t piece_bytes) {
    append_text(text, piece_bytes, add_special, parse_special, out);
  };
  try {
    if (text.size() > text_bytes_max) return {};
    const bool is_deep = text.size() > shallow_text_bytes;
    if (!is_deep || !run_on_deep_stack(text.size(), [&] { append(deep_text_bytes); })) {
      append(shallow_text_bytes);
    }
  } catch (const std::exception& e) {
    log_error("libllama cannot tokenize a text of {} bytes: {}", text.size(), e.what());
    out.clear();
  }
  return out;
}

std::string LlamaVocabulary::detokenize(std::span<const TokenId> tokens) const {
  std::string out;
  for (const TokenId token : tokens) out += piece_with_special(token);
  return out;
}

Result<std::unique_ptr<Sampler>, SamplerFault> LlamaVocabulary::make_sampler(
    const SamplingParams& params, std::span<const TokenId> prompt) const {
  return LlamaSampler::make(model_.get(), params, prompt);
}

Result<std::string, SamplerFault> LlamaVocabulary::grammar_from_schema(
    const std::string& schema_json) const {
  return grammar_of_schema(schema_json);
}

Result<ChatPrompt, ChatFault> LlamaVocabulary::apply_template(const ChatInput& input) const {
  return chat_.apply(vocab(), input);
}

Result<std::unique_ptr<Vocabulary>, LoadFault> load_vocabulary(
    const std::string& path, const std::string& chat_template_override) {
  return LlamaVocabulary::load(path, chat_template_override);
}

}  // namespace fermata::engine::llama
