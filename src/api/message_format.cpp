#include "api/message_format.h"

#include <utility>

namespace fermata::api {
namespace {

// Joins two JSON arrays that are not empty, each of which may be missing.
void append_array(std::string& array, std::string_view more) {
  if (more.empty()) return;
  if (array.empty()) {
    array = more;
    return;
  }
  array.back() = ',';
  array += more.substr(1);
}

}  // namespace

void MessageFormat::token(std::size_t i, const TokenEvent& /*event*/, const Shown& shown,
                          std::string& out) {
  grow(i, shown, out);
}

void MessageFormat::end(const Outcome& outcome, const Shown& tail, std::string& out) {
  const std::size_t i = outcome.index;
  grow(i, tail, out);
  Growing& one = growing(i);
  one.message.finish([&](const MessageDelta& added) { tell(i, added, tail, out); });
  finish(outcome, one.message.message(), one.probabilities, out);
}

std::string MessageFormat::whole(std::span<const Outcome> choices) {
  std::vector<Message> messages;
  messages.reserve(choices.size());
  for (const Outcome& choice : choices) {
    messages.push_back(parser_ ? message_of(*parser_, choice.text)
                               : Message{choice.text, /*reasoning=*/{}, /*tool_calls=*/{}});
  }
  return whole_message(choices, messages);
}

MessageFormat::Growing& MessageFormat::growing(std::size_t i) {
  while (growing_.size() <= i) growing_.push_back({GrowingMessage(parser_), {}});
  return growing_[i];
}

void MessageFormat::grow(std::size_t i, const Shown& shown, std::string& out) {
  Growing& one = growing(i);
  append_array(one.probabilities, shown.probabilities);
  one.message.grow(shown.text, [&](const MessageDelta& added) { tell(i, added, shown, out); });
}

void MessageFormat::tell(std::size_t i, const MessageDelta& added, const Shown& shown,
                         std::string& out) {
  const std::string probabilities = std::exchange(growing(i).probabilities, {});
  Shown with = shown;
  with.probabilities = probabilities;
  delta(i, added, with, out);
}

MessageEnd end_of(const Outcome& outcome, const Message& message) {
  switch (outcome.final.reason) {
    case FinishReason::limit:
    case FinishReason::window:
      return MessageEnd::length;
    case FinishReason::word:
      return message.tool_calls.empty() ? MessageEnd::stop_word : MessageEnd::calls;
    default:
      return message.tool_calls.empty() ? MessageEnd::stop : MessageEnd::calls;
  }
}

}  // namespace fermata::api
