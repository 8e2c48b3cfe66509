#include "engine/fake/fake_vocabulary.h"

#include "base/check.h"
#include "base/random.h"
#include "engine/fake/fake_sampler.h"

#include <array>

namespace fermata::engine::fake {
namespace {

constexpr std::array<std::string_view, 3> control_text{"<eos>", "<turn>", "</turn>"};

// The text between the quotes of `root ::= "TEXT"`; empty when the grammar has another form.
std::optional<std::string> literal_of(const std::string& grammar) {
  const std::string_view prefix = "root ::= \"";
  if (!grammar.starts_with(prefix) || grammar.size() < prefix.size() + 1 || grammar.back() != '"') {
    return std::nullopt;
  }
  std::string out;
  for (std::size_t i = prefix.size(); i + 1 < grammar.size(); ++i) {
    char c = grammar[i];
    if (c == '\\' && i + 2 < grammar.size()) {
      c = grammar[++i];
      if (c == 'n') c = '\n';
    }
    out += c;
  }
  return out;
}

// The value of `"key": "..."` in a flat JSON object; enough for the messages that tests send.
std::string string_field(std::string_view object, std::string_view key) {
  const std::string quoted = '"' + std::string(key) + '"';
  std::size_t at = object.find(quoted);
  if (at == std::string_view::npos) return "";
  at = object.find('"', object.find(':', at + quoted.size()));
  if (at == std::string_view::npos) return "";
  std::string out;
  for (std::size_t i = at + 1; i < object.size() && object[i] != '"'; ++i) {
    if (object[i] == '\\' && i + 1 < object.size()) ++i;
    out += object[i];
  }
  return out;
}

class PlainReply final : public ReplyParser {
 public:
  Message parse(const std::string& reply, bool) const override { return {reply, "", {}}; }
  bool is_plain() const override { return true; }
};

class FakeVocabulary final : public Vocabulary {
 public:
  FakeVocabulary() {
    for (std::int32_t i = 0; i < n_byte_tokens; ++i) {
      bytes_[static_cast<std::size_t>(i)] = static_cast<char>(i);
    }
    special_.eos = eos_token;
    special_.eot = turn_end_token;
  }

  std::int32_t size() const override { return n_vocab; }
  const SpecialTokens& special() const override { return special_; }
  bool ends_generation(TokenId token) const override {
    return token == eos_token || token == turn_end_token;
  }
  std::string_view piece(TokenId token) const override {
    const auto index = static_cast<std::size_t>(raw(token));
    FERMATA_CHECK(raw(token) >= 0 && raw(token) < n_vocab, "a token outside the vocabulary");
    if (raw(token) >= n_byte_tokens) return {};
    return {&bytes_[index], 1};
  }
  std::string_view piece_with_special(TokenId token) const override {
    if (raw(token) < n_byte_tokens) return piece(token);
    FERMATA_CHECK(raw(token) < n_vocab, "a token outside the vocabulary");
    return control_text[static_cast<std::size_t>(raw(token) - n_byte_tokens)];
  }
  std::vector<TokenId> tokenize(std::string_view text, bool, bool parse_special) const override {
    std::vector<TokenId> out;
    while (!text.empty()) {
      std::size_t used = 0;
      for (std::size_t c = 0; parse_special && c < control_text.size(); ++c) {
        if (!text.starts_with(control_text[c])) continue;
        out.push_back(TokenId{n_byte_tokens + static_cast<std::int32_t>(c)});
        used = control_text[c].size();
      }
      if (used == 0) {
        out.push_back(TokenId{static_cast<unsigned char>(text.front())});
        used = 1;
      }
      text.remove_prefix(used);
    }
    return out;
  }
  std::string detokenize(std::span<const TokenId> tokens) const override {
    std::string out;
    for (TokenId token : tokens) out += piece_with_special(token);
    return out;
  }

  Result<std::unique_ptr<Sampler>, SamplerFault> make_sampler(
      const SamplingParams& params, std::span<const TokenId>) const override {
    FakeSampler::Options options;
    options.seed = params.seed == seed_random ? static_cast<std::uint32_t>(system_random() >> 33)
                                              : params.seed;
    options.greedy = params.temperature <= 0.0F;
    options.ignore_eos = params.ignore_eos;
    options.n_probs = params.n_probs;
    options.dead_end = params.grammar == "root ::= ()";
    if (!params.grammar.empty() && !options.dead_end) {
      options.forced = literal_of(params.grammar);
      if (!options.forced)
        return Err(SamplerFault{"grammar: only root ::= \"TEXT\" is understood"});
    }
    return std::unique_ptr<Sampler>(std::make_unique<FakeSampler>(std::move(options)));
  }
  Result<std::string, SamplerFault> grammar_from_schema(const std::string&) const override {
    return Err(SamplerFault{"json_schema: not understood by the fake vocabulary"});
  }

  Result<ChatPrompt, ChatFault> apply_template(const ChatInput& input) const override {
    ChatPrompt out;
    std::string_view rest = input.messages_json;
    for (std::size_t open = rest.find('{'); open != std::string_view::npos; open = rest.find('{')) {
      const std::size_t close = rest.find('}', open);
      if (close == std::string_view::npos) return Err(ChatFault{"messages: cut short"});
      const std::string_view object = rest.substr(open, close - open);
      out.prompt += "<turn>" + string_field(object, "role") + "\n" +
                    string_field(object, "content") + "</turn>";
      rest.remove_prefix(close + 1);
    }
    if (input.add_generation_prompt) out.prompt += "<turn>assistant\n";
    out.parser = std::make_shared<PlainReply>();
    return out;
  }
  std::string_view chat_template() const override { return "fake"; }
  std::map<std::string, bool> chat_template_caps() const override { return {}; }

 private:
  std::array<char, n_byte_tokens> bytes_{};
  SpecialTokens special_;
};

}  // namespace

std::unique_ptr<Vocabulary> make_vocabulary() { return std::make_unique<FakeVocabulary>(); }

}  // namespace fermata::engine::fake
