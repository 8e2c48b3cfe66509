#include "api/live_chats.h"

#include "api/error.h"

#include <utility>

namespace fermata::api {

std::unique_ptr<LiveChats::Entry> LiveChats::add(const std::string& id, const Owner& owner,
                                                 EndThoughts end_thoughts) {
  const std::lock_guard lock(mutex_);
  chats_[id] = {owner, std::move(end_thoughts)};
  return std::make_unique<Entry>(*this, id);
}

void LiveChats::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  chats_.erase(id);
}

LiveChats::Outcome LiveChats::end_thoughts(const std::string& id, const Owner& owner) {
  const std::lock_guard lock(mutex_);
  const auto chat = chats_.find(id);
  if (chat == chats_.end() || chat->second.owner != owner) return Outcome::nobody_there;
  if (!chat->second.end_thoughts) return Outcome::not_enabled;
  chat->second.end_thoughts->store(true, std::memory_order_relaxed);
  return Outcome::done;
}

std::unique_ptr<Exchange> chat_control(const Json& body, const Context& context) {
  const Fields fields(body);
  static_cast<void>(fields.string("model", ""));
  const std::string id = fields.string("id", "");
  if (id.empty()) throw bad_request("id: missing completion id");
  if (fields.string("action", "") != "reasoning_end") {
    throw bad_request("action: unknown control action; it must be reasoning_end");
  }
  Json out = {{"success", false}};
  switch (context.live_chats->end_thoughts(id, context.owner)) {
    case LiveChats::Outcome::done:
      out["success"] = true;
      break;
    case LiveChats::Outcome::nobody_there:
      out["message"] = "no active completion for this id";
      break;
    case LiveChats::Outcome::not_enabled:
      out["message"] = "reasoning control not enabled for this completion";
      break;
  }
  return ready_exchange(Head{}, dump(out));
}

}  // namespace fermata::api
