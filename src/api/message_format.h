// The base of flavours that answer with a message: it turns pieces of text into differences of the
// message and leaves their wording to the flavour.
#pragma once

#include "api/generation.h"
#include "api/message.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::api {

class MessageFormat : public ReplyFormat {
 public:
  // No parser: a reply is all content.
  explicit MessageFormat(std::shared_ptr<const engine::ReplyParser> parser)
      : parser_(std::move(parser)) {}

  void token(std::size_t i, const TokenEvent& event, const Shown& shown, std::string& out) final;
  void end(const Outcome& outcome, const Shown& tail, std::string& out) final;
  std::string whole(std::span<const Outcome> choices) final;

 protected:
  // Stream: what was added to the message of choice i. `shown` has what comes with it: of the
  // tokens since the last delta.
  virtual void delta(std::size_t i, const MessageDelta& delta, const Shown& shown,
                     std::string& out) = 0;
  // Stream: the message is whole. `probabilities` are those that no delta carried.
  virtual void finish(const Outcome& outcome, const Message& message,
                      std::string_view probabilities, std::string& out) = 0;
  virtual std::string whole_message(std::span<const Outcome> choices,
                                    std::span<const Message> messages) = 0;

 private:
  struct Growing {
    GrowingMessage message;
    std::string probabilities;  // That wait for a delta.
  };
  Growing& growing(std::size_t i);
  // Words all that is shown.
  void grow(std::size_t i, const Shown& shown, std::string& out);
  void tell(std::size_t i, const MessageDelta& added, const Shown& shown, std::string& out);

  std::shared_ptr<const engine::ReplyParser> parser_;
  std::vector<Growing> growing_;  // By choice.
};

// Why the message ends.
enum class MessageEnd : std::uint8_t { stop, stop_word, length, calls };
MessageEnd end_of(const Outcome& outcome, const Message& message);

}  // namespace fermata::api
