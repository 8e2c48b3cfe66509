#include "unit/http/scripted_service.h"

#include "base/clock.h"

#include <chrono>
#include <thread>
#include <utility>

namespace fermata::http {
namespace {

constexpr std::chrono::seconds patience{30};

}  // namespace

class ScriptedExchange final : public api::Exchange {
 public:
  ScriptedExchange(std::shared_ptr<Script> script, std::shared_ptr<int> live)
      : script_(std::move(script)), live_(std::move(live)) {}

  ~ScriptedExchange() override {
    live_.reset();
    const std::lock_guard lock(script_->mutex_);
    script_->destroyed_ = true;
    script_->changed_.notify_all();
  }
  ScriptedExchange(const ScriptedExchange&) = delete;
  ScriptedExchange& operator=(const ScriptedExchange&) = delete;

  api::Piece pull() override {
    const std::lock_guard lock(script_->mutex_);
    if (script_->pieces_.empty()) return {};
    api::Piece piece = std::move(script_->pieces_.front());
    script_->pieces_.pop_front();
    ++script_->pulled_;
    script_->changed_.notify_all();
    return piece;
  }

  void wake_with(std::function<void()> wake) override {
    const std::lock_guard lock(script_->mutex_);
    script_->wake_ = std::move(wake);
  }

  std::string_view ping() const override { return ":\n\n"; }
  int ping_interval_seconds() const override { return script_->ping_seconds; }

 private:
  std::shared_ptr<Script> script_;
  std::shared_ptr<int> live_;
};

void Script::push(api::Piece piece) {
  {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
  }
  wake();
}

void Script::wake() const {
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    wake = wake_;
  }
  if (wake) wake();
}

bool Script::wait_pulled(int pieces) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return pulled_ >= pieces; });
}

bool Script::wait_destroyed() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return destroyed_; });
}

int Script::pieces_pulled() const {
  const std::lock_guard lock(mutex_);
  return pulled_;
}

std::unique_ptr<api::Exchange> ScriptedService::begin(api::Inquiry inquiry) {
  std::unique_lock lock(mutex_);
  ++begun_;
  if (gate_closed_ && !is_cheap(inquiry)) {
    ++at_gate_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !gate_closed_; });
    --at_gate_;
  }
  if (!inquiry.path.starts_with("/scripted")) {
    return api::ready_exchange(api::Head{}, echo_text(inquiry));
  }
  auto script = std::make_shared<Script>();
  script->ping_seconds = ping_seconds_;
  scripts_.push_back(script);
  changed_.notify_all();
  return std::make_unique<ScriptedExchange>(std::move(script), live_token_);
}

bool ScriptedService::is_cheap(const api::Inquiry& inquiry) const {
  return inquiry.path.starts_with("/cheap");
}

std::shared_ptr<Script> ScriptedService::next_script() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [this] { return !scripts_.empty(); })) return nullptr;
  std::shared_ptr<Script> script = std::move(scripts_.front());
  scripts_.pop_front();
  return script;
}

void ScriptedService::set_ping_seconds(int seconds) {
  const std::lock_guard lock(mutex_);
  ping_seconds_ = seconds;
}

void ScriptedService::close_gate() {
  const std::lock_guard lock(mutex_);
  gate_closed_ = true;
}

void ScriptedService::open_gate() {
  const std::lock_guard lock(mutex_);
  gate_closed_ = false;
  changed_.notify_all();
}

bool ScriptedService::wait_at_gate(int workers) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return at_gate_ >= workers; });
}

int ScriptedService::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

int ScriptedService::live() const { return static_cast<int>(live_token_.use_count()) - 1; }

std::string echo_text(const api::Inquiry& inquiry) {
  std::string out(api::name(inquiry.method));
  out.append(" ").append(inquiry.path);
  if (!inquiry.query.empty()) out.append("?").append(inquiry.query);
  return out.append("|").append(inquiry.body);
}

api::Piece stream_head() {
  api::Head head;
  head.content_type = "text/event-stream";
  head.stream = true;
  return {.head = std::move(head), .body = "", .done = false};
}

api::Piece last_piece(std::string text) {
  return {.head = {}, .body = std::move(text), .done = true};
}

api::Piece whole_answer(int status, std::string body) {
  api::Head head;
  head.status = status;
  return {.head = std::move(head), .body = std::move(body), .done = true};
}

bool eventually(const std::function<bool()>& condition) {
  const SteadyClock clock;
  const Micros give_up = clock.now() + Micros(std::chrono::microseconds(patience).count());
  while (!condition()) {
    if (clock.now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace fermata::http
