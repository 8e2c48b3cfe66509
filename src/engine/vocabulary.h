// Text to tokens and back, samplers and chat templates: the part of a model that needs no weights.
// It outlives every engine, and never sleeps. All methods are const and thread-safe.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "core/sampling_params.h"
#include "engine/sampler.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::engine {

struct SpecialTokens {
  std::optional<TokenId> bos, eos, eot, sep, pad;
  // Infill: around the parts of a file, before a repository, and between its files.
  std::optional<TokenId> fim_prefix, fim_suffix, fim_middle, fim_repository, fim_separator;
  bool adds_bos = false;
};

// Why no sampler could be made: one line for the client that begins with the field.
struct SamplerFault {
  std::string message;
  std::string field = {};
};

// Messages and tools are JSON text in OpenAI's shape, already checked to be arrays of objects.
struct ChatInput {
  std::string messages_json;
  std::string tools_json;  // Empty: none.
  std::string tool_choice = "auto";
  std::string json_schema;                             // Empty: none.
  std::string grammar;                                 // Empty: none.
  std::map<std::string, std::string> template_kwargs;  // Values are JSON text.
  bool parallel_tool_calls = false;
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // The last assistant message is a beginning (prefill).
  bool enable_thinking = true;
  std::string reasoning_format = "auto";
  bool parse_reply = true;                    // false: the content of the reply is all of its text.
  std::int32_t reasoning_budget = -1;         // Tokens of thoughts; -1: no limit.
  std::string reasoning_budget_message = {};  // What ends thoughts that reached it.
};

// How the text of a reply becomes a message again; opaque, made by ChatFormat::apply.
class ReplyParser {
 public:
  virtual ~ReplyParser() = default;
  struct ToolCall {
    std::string id, name, arguments;
  };
  struct Message {
    std::string content, reasoning;
    std::vector<ToolCall> tool_calls;
  };
  // `partial`: the reply goes on. Never throws; what cannot be parsed comes back as content.
  virtual Message parse(const std::string& reply, bool partial) const = 0;
  // Whether parse() gives every reply back as content, as it is.
  virtual bool is_plain() const = 0;
};

struct ChatPrompt {
  std::string prompt;
  // The grammar fields and the generation prompt that the template asks for, ready to merge.
  SamplingParams constraints;
  std::vector<std::string> stop;
  std::shared_ptr<const ReplyParser> parser;
};

// A template cannot be applied: the client's fault (400), in one line.
struct ChatFault {
  std::string message;
};

class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  virtual std::int32_t size() const = 0;
  virtual const SpecialTokens& special() const = 0;
  // True for every token that ends a reply (eos, eot, ...). REQUIRES: 0 <= token < size().
  virtual bool ends_generation(TokenId token) const = 0;
  // The bytes that a token adds to a reply; empty for control tokens. Valid as long as this object.
  virtual std::string_view piece(TokenId token) const = 0;
  // The same with control tokens spelled out, as /detokenize and templates show them.
  virtual std::string_view piece_with_special(TokenId token) const = 0;
  // `text` may be any bytes. parse_special: text of control tokens becomes those tokens.
  virtual std::vector<TokenId> tokenize(std::string_view text, bool add_special,
                                        bool parse_special) const = 0;
  virtual std::string detokenize(std::span<const TokenId> tokens) const = 0;

  // `prompt` primes the penalties. Compiling a grammar may take long: call it on a worker.
  virtual Result<std::unique_ptr<Sampler>, SamplerFault> make_sampler(
      const SamplingParams& params, std::span<const TokenId> prompt) const = 0;
  // GBNF of a JSON schema, or why it cannot be expressed.
  virtual Result<std::string, SamplerFault> grammar_from_schema(
      const std::string& schema_json) const = 0;

  virtual Result<ChatPrompt, ChatFault> apply_template(const ChatInput& input) const = 0;
  // The template's source text and what it can do ("supports_tools": true, ...).
  virtual std::string_view chat_template() const = 0;
  virtual std::map<std::string, bool> chat_template_caps() const = 0;
};

}  // namespace fermata::engine
