// A reply as the message that it becomes: what each new piece of text adds to it. The one place
// that tells differences; the APIs only word them.
#pragma once

#include "engine/vocabulary.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::api {

using Message = engine::ReplyParser::Message;

// What was added. All in order make the message: of each call its beginning, then its arguments.
struct MessageDelta {
  enum class Kind : std::uint8_t { reasoning, content, call, arguments };
  Kind kind = Kind::content;
  std::string_view text = {};           // Of reasoning, content and arguments; never empty there.
  std::size_t call = 0;                 // Index of the call.
  std::string_view id = {}, name = {};  // Of a call that begins.
};
using OnDelta = std::function<void(const MessageDelta&)>;

// Parses the text so far again as it grows. Parsing takes time in proportion to the text: each
// piece is parsed while all parsing together stays below parse_bytes_free bytes; from then on the
// text must have grown by one part in parse_growth since the last time. So the bytes parsed for a
// reply of n bytes are at most parse_bytes_free + (parse_growth + 2) * n.
class GrowingMessage {
 public:
  static constexpr std::size_t parse_bytes_free = std::size_t{16} << 20;
  static constexpr std::size_t parse_growth = 64;

  // No parser: all is content.
  explicit GrowingMessage(std::shared_ptr<const engine::ReplyParser> parser)
      : parser_(std::move(parser)) {}

  // The reply goes on with `text`.
  void grow(std::string_view text, const OnDelta& on_delta);
  // The reply ends. What was told before stays, even where the whole text reads otherwise.
  void finish(const OnDelta& on_delta);
  // Calls have their ids; whole after finish().
  const Message& message() const { return message_; }

 private:
  struct Call {
    std::string id;
    std::string arguments;  // So far.
  };

  bool is_plain() const { return parser_ == nullptr || parser_->is_plain(); }
  void parse(bool partial, const OnDelta& on_delta);
  void tell_calls(bool partial, const OnDelta& on_delta);

  std::shared_ptr<const engine::ReplyParser> parser_;
  std::string text_;
  Message message_;
  std::size_t parsed_bytes_ = 0;  // Of all parsing.
  std::size_t parsed_at_ = 0;     // The length of the text when it was parsed last.
  std::string told_reasoning_, told_content_;
  std::vector<Call> calls_;  // That were told.
};

// The message of a whole reply.
Message message_of(const engine::ReplyParser& parser, const std::string& reply);

}  // namespace fermata::api
