#include "http/listener.h"

#include "base/check.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace fermata::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Local = asio::local::stream_protocol;
using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

constexpr std::size_t path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;

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

tcp::endpoint tcp_endpoint(const Acceptor& acceptor) {
  const Protocol::endpoint from = acceptor.local_endpoint();
  tcp::endpoint out;
  FERMATA_CHECK(from.size() <= out.capacity(), "an address of TCP");
  std::memcpy(out.data(), from.data(), from.size());
  out.resize(from.size());
  return out;
}

std::string address_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

ErrorCode open_one(Acceptor& acceptor, const tcp::endpoint& endpoint,
                   const ListenOptions& options) {
  ErrorCode error;
  acceptor.open(endpoint.protocol(), error);
  // After a restart the old connections' remains must not keep the port.
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && options.reuse_port) acceptor.set_option(ReusePort(true), error);
  // "::" alone serves IPv4 too; beside other hosts it leaves "0.0.0.0" free.
  if (!error && endpoint.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(options.hosts.size() > 1), error);
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

// Adds the sockets of one host; the port becomes the chosen one when it was 0.
Result<void, std::string> open_host(asio::io_context& io, const std::string& host,
                                    const ListenOptions& options, Listening& out) {
  auto endpoints = resolve(io, host);
  if (!endpoints) return Err{endpoints.error()};
  const std::size_t before = out.acceptors.size();
  ErrorCode last;
  for (tcp::endpoint endpoint : *endpoints) {
    endpoint.port(out.port);
    Acceptor acceptor(io);
    last = open_one(acceptor, endpoint, options);
    if (last && !is_absent_here(last)) break;
    if (last) continue;
    out.port = tcp_endpoint(acceptor).port();
    out.addresses.push_back(address_text(tcp_endpoint(acceptor)));
    out.acceptors.push_back(std::move(acceptor));
  }
  const bool failed = last && !is_absent_here(last);
  if (!failed && out.acceptors.size() > before) return {};
  return Err{fmt::format("cannot listen on {}:{}: {}", host, out.port, why(last, out.port))};
}

// Removes the file of a socket that nobody answers on.
Result<void, std::string> clear_place(asio::io_context& io, const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) {
    return Err{fmt::format(
        "cannot listen on {}: a file that is no socket is there; remove it, or choose another path",
        path)};
  }
  asio::basic_stream_socket<Local, LoopExecutor> probe(io);
  ErrorCode error;
  probe.connect(Local::endpoint(path), error);
  if (error == asio::error::connection_refused) {
    unlink(path.c_str());
    return {};
  }
  return Err{fmt::format("cannot listen on {}: {}; end what is there, or choose another path", path,
                         error ? error.message() : "a program answers there")};
}

Result<void, std::string> open_path(asio::io_context& io, const std::string& path, Listening& out) {
  const auto fail = [&path](std::string_view reason) {
    return Err{
        fmt::format("cannot listen on {}: {}; choose another path with --host", path, reason)};
  };
  if (path.size() > path_bytes_max) {
    return fail(fmt::format("the path of a socket has at most {} bytes", path_bytes_max));
  }
  if (const auto cleared = clear_place(io, path); !cleared) return Err{cleared.error()};
  Acceptor acceptor(io);
  ErrorCode error;
  acceptor.open(Local(), error);
  if (!error) acceptor.bind(Local::endpoint(path), error);
  if (error) return fail(error.message());
  // Nobody can connect before it listens.
  struct stat made {};
  if (chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || lstat(path.c_str(), &made) != 0) {
    return fail(std::strerror(errno));
  }
  out.files.emplace_back(path, made.st_dev, made.st_ino);
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return fail(error.message());
  out.addresses.push_back("unix:" + path);
  out.acceptors.push_back(std::move(acceptor));
  return {};
}

}  // namespace

SocketFile::~SocketFile() {
  if (path_.empty()) return;
  struct stat found {};
  if (lstat(path_.c_str(), &found) != 0) return;
  if (found.st_dev == device_ && found.st_ino == inode_) unlink(path_.c_str());
}

bool is_socket_path(const std::string& host) { return host.ends_with(".sock"); }

Result<Listening, std::string> open_listening(asio::io_context& io, const ListenOptions& options) {
  FERMATA_CHECK(!options.hosts.empty(), "a server listens somewhere");
  Listening out;
  out.port = options.port;
  for (const std::string& host : options.hosts) {
    const auto opened =
        is_socket_path(host) ? open_path(io, host, out) : open_host(io, host, options, out);
    if (!opened) return Err{opened.error()};
  }
  if (std::ranges::all_of(options.hosts, is_socket_path)) out.port = 0;
  return out;
}

}  // namespace fermata::http
