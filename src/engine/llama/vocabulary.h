// The text half of a model. See engine/vocabulary.h for the contract.
#pragma once

#include "base/result.h"
#include "engine/llama/backend.h"
#include "engine/llama/chat.h"
#include "engine/vocabulary.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <llama-cpp.h>

namespace fermata::engine::llama {

// The bytes of every token, in one piece of memory.
class PieceTable {
 public:
  // `special`: control tokens spelled out, else empty.
  PieceTable(const llama_vocab* vocab, bool special);
  // REQUIRES: a token of the vocabulary.
  std::string_view operator[](TokenId token) const;

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

class LlamaVocabulary final : public Vocabulary {
 public:
  static Result<std::unique_ptr<Vocabulary>, LoadFault> load(const std::string& path,
                                                             const std::string& chat_template);

  std::int32_t size() const override { return size_; }
  const SpecialTokens& special() const override { return special_; }
  bool ends_generation(TokenId token) const override;
  std::string_view piece(TokenId token) const override { return pieces_[token]; }
  std::string_view piece_with_special(TokenId token) const override {
    return pieces_with_special_[token];
  }
  // Bytes that are no UTF-8 count as U+FFFD. Empty for a text that the library cannot take (a
  // gigabyte or more).
  std::vector<TokenId> tokenize(std::string_view text, bool add_special,
                                bool parse_special) const override;
  std::string detokenize(std::span<const TokenId> tokens) const override;
  Result<std::unique_ptr<Sampler>, SamplerFault> make_sampler(
      const SamplingParams& params, std::span<const TokenId> prompt) const override;
  Result<std::string, SamplerFault> grammar_from_schema(
      const std::string& schema_json) const override;
  Result<ChatPrompt, ChatFault> apply_template(const ChatInput& input) const override;
  std::string_view chat_template() const override { return chat_.source(); }
  std::map<std::string, bool> chat_template_caps() const override { return chat_.caps(); }

 private:
  LlamaVocabulary(llama_model_ptr model, ChatTemplate chat);
  void append_text(std::string_view text, std::size_t piece_bytes, bool add_special,
                   bool parse_special, std::vector<TokenId>& out) const;
  const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }

  llama_model_ptr model_;
  std::int32_t size_;
  SpecialTokens special_;
  PieceTable pieces_;
  PieceTable pieces_with_special_;
  ChatTemplate chat_;
};

}  // namespace fermata::engine::llama
