// Listening sockets from a list of hosts.
#pragma once

#include "base/result.h"
#include "http/transport.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <sys/types.h>

namespace fermata::http {

using Acceptor = boost::asio::basic_socket_acceptor<Protocol, LoopExecutor>;

// The file of a Unix socket that listens. Goes with this object, unless another file has taken its
// place. Goes before its socket closes: until then nobody else's file has its inode number.
class SocketFile {
 public:
  SocketFile(std::string path, dev_t device, ino_t inode)
      : path_(std::move(path)), device_(device), inode_(inode) {}
  SocketFile(SocketFile&& from) noexcept
      : path_(std::exchange(from.path_, "")), device_(from.device_), inode_(from.inode_) {}
  SocketFile& operator=(SocketFile&&) = delete;
  ~SocketFile();

 private:
  std::string path_;  // Empty: nothing to remove.
  dev_t device_;
  ino_t inode_;
};

struct ListenOptions {
  std::vector<std::string> hosts;  // Addresses, names, or paths that end in ".sock".
  std::uint16_t port = 0;          // Of all addresses; 0: a free one.
  bool reuse_port = false;
};

struct Listening {
  std::vector<Acceptor> acceptors;
  std::vector<std::string> addresses;  // "127.0.0.1:8080", "[::1]:8080", "unix:/run/x.sock"
  std::uint16_t port = 0;              // 0: there are Unix sockets only.
  std::vector<SocketFile> files;
};

bool is_socket_path(const std::string& host);

// Binds and listens on every address of every host. Of a name with several addresses those that
// this machine has are enough. A socket file that nobody answers on is replaced; a new one is for
// the server's user only (mode 0600). The error is one line with the mend. REQUIRES: hosts is not
// empty.
Result<Listening, std::string> open_listening(boost::asio::io_context& io,
                                              const ListenOptions& options);

}  // namespace fermata::http
