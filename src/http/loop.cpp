#include "http/loop.h"

#include "base/check.h"
#include "http/connection.h"

#include <algorithm>
#include <chrono>

namespace fermata::http {

Loop::Loop(Shared& shared, std::function<void()> on_ended)
    : shared_(shared), on_ended_(std::move(on_ended)) {}

Loop::~Loop() { FERMATA_CHECK(connections_.empty(), "an event loop ends after its connections"); }

void Loop::add(Socket socket, bool refuse) {
  Transport transport(std::move(socket));
  if (stop_ != StopLevel::none || !transport.open(shared_.tls.get())) {
    transport.close();
    count_out(refuse);
    return;
  }
  const auto connection =
      std::make_shared<Connection>(std::move(transport), shared_, *this, refuse);
  connections_.push_back(connection);
  start_ticking();
  connection->start(std::prev(connections_.end()));
}

void Loop::remove(Connections::iterator place, bool refused) {
  connections_.erase(place);
  count_out(refused);
  end_when_empty();
}

void Loop::count_out(bool refused) {
  (refused ? shared_.refusals_open : shared_.stats.connections_open).add(-1);
}

void Loop::stop(StopLevel level, std::optional<Micros> grace) {
  if (grace) stop_now_at_ = shared_.clock.now() + *grace;
  if (level > stop_) raise_stop(level);
  end_when_empty();
}

void Loop::raise_stop(StopLevel level) {
  stop_ = level;
  for (auto next = connections_.begin(); next != connections_.end();) {
    const std::shared_ptr<Connection> connection = *next++;  // It may remove itself.
    connection->on_stop();
  }
}

void Loop::end_when_empty() {
  if (stop_ == StopLevel::none || ended_ || !connections_.empty()) return;
  ended_ = true;
  timer_.cancel();
  on_ended_();
}

// Deadlines are plain fields of the connections and are looked at here. Arming a timer for every
// read, write and token would cost more than the whole rest of a token.
void Loop::start_ticking() {
  if (ticking_) return;
  ticking_ = true;
  timer_.expires_after(std::chrono::microseconds(shared_.options.tick.value));
  timer_.async_wait([this](ErrorCode /*error*/) {
    ticking_ = false;
    tick();
  });
}

// Nobody is left who would take an answer.
bool Loop::all_stalled(Micros now) const {
  return std::ranges::all_of(connections_, [&](const std::shared_ptr<Connection>& connection) {
    return connection->is_stalled(now, shared_.options.stall_timeout);
  });
}

void Loop::tick() {
  const Micros now = shared_.clock.now();
  if (stop_ != StopLevel::none && stop_now_at_ && now >= *stop_now_at_) {
    stop_now_at_.reset();
    raise_stop(StopLevel::now);
  }
  if (stop_ == StopLevel::graceful && all_stalled(now)) raise_stop(StopLevel::now);
  for (auto next = connections_.begin(); next != connections_.end();) {
    const std::shared_ptr<Connection> connection = *next++;  // It may remove itself.
    connection->on_tick(now);
  }
  if (!connections_.empty()) start_ticking();
}

}  // namespace fermata::http
