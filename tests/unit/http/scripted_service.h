// A service whose answers the test writes piece by piece while the server asks for them.
#pragma once

#include "api/exchange.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace fermata::http {

// The test's hand on one exchange. Thread-safe. Waits give up after 30 s, with false.
class Script {
 public:
  // A piece that the server may pull from now on; wakes it.
  void push(api::Piece piece);
  void push_text(std::string text) { push({.head = {}, .body = std::move(text), .done = false}); }
  void wake() const;

  bool wait_pulled(int pieces);  // Until so many pieces in all have been pulled.
  bool wait_destroyed();         // Until the server has let go of the exchange.
  int pieces_pulled() const;

  int ping_seconds = 0;  // Set by the service before anyone else sees it.

 private:
  friend class ScriptedExchange;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<api::Piece> pieces_;
  std::function<void()> wake_;
  int pulled_ = 0;
  bool destroyed_ = false;
};

// Paths: /cheap/... is cheap and answers at once, /echo answers at once from a worker; both say
// "METHOD path?query|body". /scripted... is a Script.
class ScriptedService final : public api::Service {
 public:
  std::unique_ptr<api::Exchange> begin(api::Inquiry inquiry) override;
  bool is_cheap(const api::Inquiry& inquiry) const override;

  // The next exchange that has begun, in order of begin(). Null after 30 s.
  std::shared_ptr<Script> next_script();
  void set_ping_seconds(int seconds);

  // begin() blocks in its worker until the gate opens again; cheap requests pass.
  void close_gate();
  void open_gate();
  bool wait_at_gate(int workers);  // Until so many stand there.

  int begun() const;  // Calls of begin() so far.
  int live() const;   // Scripted exchanges that exist.

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<std::shared_ptr<Script>> scripts_;
  bool gate_closed_ = false;
  int at_gate_ = 0;
  int begun_ = 0;
  int ping_seconds_ = 0;
  std::shared_ptr<int> live_token_ = std::make_shared<int>(0);  // One more owner per exchange.
};

// What /echo and /cheap answer.
std::string echo_text(const api::Inquiry& inquiry);

api::Piece stream_head();                               // text/event-stream, no bytes yet
api::Piece last_piece(std::string text = "");           // ends a stream
api::Piece whole_answer(int status, std::string body);  // head, body and end

// Yields until `condition` holds; false after 30 s.
bool eventually(const std::function<bool()>& condition);

}  // namespace fermata::http
