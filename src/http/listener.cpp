#include "http/listener.h"

#include "base/check.h"

#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <spdlog/fmt/fmt.h>

namespace fermata::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

bool is_absent_here(const ErrorCode& error) {
  return error == boost::system::errc::address_not_available ||
         error == boost::system::errc::address_family_not_supported;
}

std::string why(const ErrorCode& error, std::uint16_t port) {
  if (error == asio::error::address_in_use) {
    return "the port is in use; end the program that has it or choose another with --port";
  }
  if (error == asio::error::access_denied) {
    return fmt::format("no permission for port {}; choose one above 1023 with --port", port);
  }
  if (is_absent_here(error)) {
    return "this machine has no such address; see --host";
  }
  return error.message();
}

ErrorCode open_one(Acceptor& acceptor, const tcp::endpoint& endpoint, bool only_host) {
  ErrorCode error;
  acceptor.open(endpoint.protocol(), error);
  // After a restart the old connections' remains must not keep the port.
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  // "::" alone serves IPv4 too; beside other hosts it leaves "0.0.0.0" free.
  if (!error && endpoint.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(!only_host), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

Result<std::vector<tcp::endpoint>, std::string> resolve(asio::io_context& io,
                                                        const std::string& host) {
  asio::ip::basic_resolver<tcp, LoopExecutor> resolver(io);
  ErrorCode error;
  const auto found = resolver.resolve(host, "0", tcp::resolver::passive, error);
  if (error || found.empty()) {
    return Err{
        fmt::format("cannot listen on host '{}': no address of that name; see --host", host)};
  }
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  return endpoints;
}

// Adds the sockets of one host; `port` becomes the chosen one when it was 0.
Result<void, std::string> open_host(asio::io_context& io, const std::string& host, bool only_host,
                                    std::uint16_t& port, std::vector<Acceptor>& out) {
  auto endpoints = resolve(io, host);
  if (!endpoints) return Err{endpoints.error()};
  const std::size_t before = out.size();
  ErrorCode last;
  for (tcp::endpoint endpoint : *endpoints) {
    endpoint.port(port);
    Acceptor acceptor(io);
    last = open_one(acceptor, endpoint, only_host);
    if (last && !is_absent_here(last)) break;
    if (last) continue;
    port = acceptor.local_endpoint().port();
    out.push_back(std::move(acceptor));
  }
  const bool failed = last && !is_absent_here(last);
  if (!failed && out.size() > before) return {};
  return Err{fmt::format("cannot listen on {}:{}: {}", host, port, why(last, port))};
}

}  // namespace

Result<std::vector<Acceptor>, std::string> open_acceptors(asio::io_context& io,
                                                          const std::vector<std::string>& hosts,
                                                          std::uint16_t port) {
  FERMATA_CHECK(!hosts.empty(), "a server listens somewhere");
  std::vector<Acceptor> out;
  for (const std::string& host : hosts) {
    const auto opened = open_host(io, host, hosts.size() == 1, port, out);
    if (!opened) return Err{opened.error()};
  }
  return out;
}

std::string address_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

}  // namespace fermata::http
