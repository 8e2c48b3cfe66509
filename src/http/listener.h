// Listening sockets from a list of hosts.
#pragma once

#include "base/result.h"
#include "http/transport.h"

#include <cstdint>
#include <string>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>

namespace fermata::http {

using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, LoopExecutor>;

// Binds and listens on every address of every host, all on one port (0: a free one). Of a name
// with several addresses those that this machine has are enough. The error is one line with the
// mend. REQUIRES: hosts is not empty.
Result<std::vector<Acceptor>, std::string> open_acceptors(boost::asio::io_context& io,
                                                          const std::vector<std::string>& hosts,
                                                          std::uint16_t port);

// "127.0.0.1:8080", "[::1]:8080"
std::string address_text(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace fermata::http
