// One event loop with its thread and the connections that live on it.
#pragma once

#include "http/shared.h"
#include "http/transport.h"

#include <functional>
#include <list>
#include <memory>
#include <optional>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace fermata::http {

class Connection;
using Connections = std::list<std::shared_ptr<Connection>>;
using Timer = boost::asio::steady_timer::rebind_executor<LoopExecutor>::other;

// A connection never changes its loop, so nothing of it needs a lock. Methods are for the loop's
// thread, except where said.
class Loop {
 public:
  // `on_ended` is called once, on the loop's thread, when a stop has ended the last connection.
  Loop(Shared& shared, std::function<void()> on_ended);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // The body of the thread: returns after release(), when nothing is left to do.
  void run() { io_.run(); }
  // Any thread; once nothing will be posted any more.
  void release() { work_.reset(); }

  boost::asio::io_context& io() { return io_; }
  StopLevel stop_level() const { return stop_; }

  // Serves an accepted socket; with `refuse` it only says that the server is full. The caller has
  // counted it in.
  void add(Socket socket, bool refuse);
  // The connection has ended; counts it out.
  void remove(Connections::iterator place, bool refused);
  void stop(StopLevel level, std::optional<Micros> grace);

 private:
  void start_ticking();
  void tick();
  bool all_stalled(Micros now) const;
  void raise_stop(StopLevel level);
  void count_out(bool refused);
  void end_when_empty();

  Shared& shared_;
  std::function<void()> on_ended_;
  // One thread runs it: the hint spares the library waking another.
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<LoopExecutor> work_{io_.get_executor()};
  Timer timer_{io_};
  bool ticking_ = false;
  Connections connections_;
  StopLevel stop_ = StopLevel::none;
  std::optional<Micros> stop_now_at_;
  bool ended_ = false;
};

}  // namespace fermata::http
