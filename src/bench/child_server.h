// A server in a process of its own, as a user would run it.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace fermata::bench {

// Ends the process when destroyed, at once.
class ChildServer {
 public:
  // Runs this binary's `serve` with the arguments on a free port, and returns as soon as it listens
  // (the model may still load; see wait_until_ready). Error: one line.
  static Result<std::unique_ptr<ChildServer>, std::string> start(std::vector<std::string> args);
  // The same for another program that takes llama-server's flags, ready to answer.
  static Result<std::unique_ptr<ChildServer>, std::string> start_peer(
      const std::string& program, const std::vector<std::string>& args);
  ~ChildServer();
  ChildServer(const ChildServer&) = delete;
  ChildServer& operator=(const ChildServer&) = delete;

  // Asks it to end and waits until it has: what is under way is done, and what was to be stored is
  // stored.
  void stop();

  int port() const { return port_; }
  pid_t pid() const { return pid_; }

 private:
  ChildServer(pid_t pid, int port) : pid_(pid), port_(port) {}
  pid_t pid_;  // 0: it was stopped.
  int port_;
};

}  // namespace fermata::bench
