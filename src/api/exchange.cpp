#include "api/exchange.h"

namespace fermata::api {
namespace {

class ReadyExchange final : public Exchange {
 public:
  ReadyExchange(Head head, std::string body)
      : piece_{.head = std::move(head), .body = std::move(body), .done = true} {}

  Piece pull() override { return std::exchange(piece_, Piece{}); }
  void wake_with(std::function<void()> /*wake*/) override {}  // Nothing new ever comes.
  std::string_view ping() const override { return {}; }
  int ping_interval_seconds() const override { return 0; }

 private:
  Piece piece_;
};

}  // namespace

std::string_view name(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::post:
      return "POST";
    case Method::put:
      return "PUT";
    case Method::del:
      return "DELETE";
    case Method::options:
      return "OPTIONS";
    case Method::head:
      return "HEAD";
    case Method::other:
      break;
  }
  return "-";
}

std::string_view header(const Inquiry& inquiry, std::string_view lower_case_name) {
  for (const auto& [name, value] : inquiry.headers) {
    if (name == lower_case_name) return value;
  }
  return {};
}

std::unique_ptr<Exchange> ready_exchange(Head head, std::string body) {
  return std::make_unique<ReadyExchange>(std::move(head), std::move(body));
}

}  // namespace fermata::api
