#include "bench/child_server.h"

#include "bench/client.h"

#include <array>
#include <cstdio>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fermata::bench {
namespace {

constexpr int start_timeout_ms = 120'000;

// The port out of "... http://127.0.0.1:PORT"; 0 when the text is not complete yet.
int port_in(const std::string& text) {
  const std::string marker = "http://127.0.0.1:";
  const std::size_t at = text.find(marker);
  if (at == std::string::npos || text.find('\n', at) == std::string::npos) return 0;
  return std::atoi(text.c_str() + at + marker.size());
}

int read_port(int fd) {
  std::string text;
  std::array<char, 512> buffer;
  pollfd ready{fd, POLLIN, 0};
  while (poll(&ready, 1, start_timeout_ms) > 0) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n <= 0) return 0;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (const int port = port_in(text)) return port;
  }
  return 0;
}

// Its output goes to `out`, its messages where ours go.
Result<pid_t, std::string> spawn(const char* program, std::vector<std::string>& words, int out) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, program, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Err("the server cannot be started: " + std::string(strerror(failed)));
  return pid;
}

// Nobody has it now; somebody might before it is used.
int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  return bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

Result<std::unique_ptr<ChildServer>, std::string> ChildServer::start(
    std::vector<std::string> args) {
  std::vector<std::string> words = {"fermata", "serve", "--host",       "127.0.0.1",
                                    "--port",  "0",     "--log-disable"};
  words.insert(words.end(), args.begin(), args.end());
  std::array<int, 2> out{};
  if (pipe2(out.data(), O_CLOEXEC) != 0) return Err(std::string("no pipe for the server's output"));
  const auto pid = spawn("/proc/self/exe", words, out[1]);
  close(out[1]);
  const int port = pid.ok() ? read_port(out[0]) : 0;
  close(out[0]);
  if (!pid) return Err(pid.error());
  std::unique_ptr<ChildServer> server(new ChildServer(*pid, port));
  if (port == 0) return Err(std::string("the server did not come up; its message is above"));
  return server;
}

Result<std::unique_ptr<ChildServer>, std::string> ChildServer::start_peer(
    const std::string& program, const std::vector<std::string>& args) {
  const int port = free_port();
  std::vector<std::string> words = {program, "--host", "127.0.0.1", "--port", std::to_string(port)};
  words.insert(words.end(), args.begin(), args.end());
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const auto pid = spawn(program.c_str(), words, nothing);
  close(nothing);
  if (!pid) return Err(pid.error());
  std::unique_ptr<ChildServer> server(new ChildServer(*pid, port));
  for (int tries = 0; tries < start_timeout_ms / 100; ++tries) {
    if (is_healthy(port)) return server;
    if (waitpid(*pid, nullptr, WNOHANG) != 0) return Err(program + " ended before it answered");
    (void)poll(nullptr, 0, 100);
  }
  return Err(program + " does not answer");
}

void ChildServer::stop() {
  if (pid_ == 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

ChildServer::~ChildServer() {
  if (pid_ == 0) return;
  kill(pid_, SIGTERM);
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

}  // namespace fermata::bench
