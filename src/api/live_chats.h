// The chats that are being answered, by the id that their clients read, for those who want to say
// something about a reply while it comes.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"
#include "core/request.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fermata::api {

using EndThoughts = std::shared_ptr<std::atomic<bool>>;

// Thread-safe. There are as many as there are connections, at most.
class LiveChats {
 public:
  // Takes the chat out again. Outlived by the list.
  class Entry {
   public:
    Entry(LiveChats& chats, std::string id) : chats_(chats), id_(std::move(id)) {}
    ~Entry() { chats_.remove(id_); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    LiveChats& chats_;
    const std::string id_;
  };

  // `end_thoughts` is null where the client did not ask for it.
  [[nodiscard]] std::unique_ptr<Entry> add(const std::string& id, const Owner& owner,
                                           EndThoughts end_thoughts);

  enum class Outcome : std::uint8_t {
    done,
    nobody_there,  // Finished, never was, or another's.
    not_enabled,   // It did not ask for it.
  };
  Outcome end_thoughts(const std::string& id, const Owner& owner);

 private:
  struct Chat {
    Owner owner{};
    EndThoughts end_thoughts;
  };
  void remove(const std::string& id);

  std::mutex mutex_;
  std::map<std::string, Chat> chats_;
};

// POST /v1/chat/completions/control: {id, action: "reasoning_end"}.
std::unique_ptr<Exchange> chat_control(const Json& body, const Context& context);

}  // namespace fermata::api
