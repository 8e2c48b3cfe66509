// Waits for a receipt of the scheduler without holding a thread.
#pragma once

#include "api/exchange.h"
#include "scheduler/reply.h"

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace fermata::api {

// `answer` makes the whole answer of the receipt.
template <class Receipt, class Answer>
class ReplyExchange final : public Exchange {
 public:
  ReplyExchange(std::shared_ptr<scheduler::Reply<Receipt>> reply, Answer answer)
      : reply_(std::move(reply)), answer_(std::move(answer)) {}
  ~ReplyExchange() override { reply_->wake_with(nullptr); }
  ReplyExchange(const ReplyExchange&) = delete;
  ReplyExchange& operator=(const ReplyExchange&) = delete;

  Piece pull() override {
    const auto receipt = reply_->take();
    return receipt ? answer_(*receipt) : Piece{};
  }
  void wake_with(std::function<void()> wake) override { reply_->wake_with(std::move(wake)); }
  std::string_view ping() const override { return {}; }
  int ping_interval_seconds() const override { return 0; }

 private:
  const std::shared_ptr<scheduler::Reply<Receipt>> reply_;
  const Answer answer_;
};

template <class Receipt, class Answer>
std::unique_ptr<Exchange> reply_exchange(std::shared_ptr<scheduler::Reply<Receipt>> reply,
                                         Answer answer) {
  return std::make_unique<ReplyExchange<Receipt, Answer>>(std::move(reply), std::move(answer));
}

}  // namespace fermata::api
