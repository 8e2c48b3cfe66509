// An answer that waits for one value of another thread, and holds none meanwhile.
#pragma once

#include "api/exchange.h"
#include "base/reply.h"

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace fermata::api {

template <class T>
class ReplyExchange final : public Exchange {
 public:
  ReplyExchange(std::shared_ptr<Reply<T>> reply, std::function<Piece(const T&)> word)
      : reply_(std::move(reply)), word_(std::move(word)) {}
  ~ReplyExchange() override { reply_->wake_with(nullptr); }
  ReplyExchange(const ReplyExchange&) = delete;
  ReplyExchange& operator=(const ReplyExchange&) = delete;

  Piece pull() override {
    const auto value = reply_->take();
    return value ? word_(*value) : Piece{};
  }
  void wake_with(std::function<void()> wake) override { reply_->wake_with(std::move(wake)); }
  std::string_view ping() const override { return {}; }
  int ping_interval_seconds() const override { return 0; }

 private:
  const std::shared_ptr<Reply<T>> reply_;
  const std::function<Piece(const T&)> word_;
};

// `word` makes the whole answer of the value; it must not throw.
template <class T>
std::unique_ptr<Exchange> reply_exchange(std::shared_ptr<Reply<T>> reply,
                                         std::function<Piece(const T&)> word) {
  return std::make_unique<ReplyExchange<T>>(std::move(reply), std::move(word));
}

}  // namespace fermata::api
