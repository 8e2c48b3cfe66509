#include "unit/http/raw_client.h"

#include "base/check.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace fermata::http {

RawClient::RawClient() {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  FERMATA_CHECK(fd_ >= 0, "the test has a socket");
  const timeval patience{.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

RawClient::RawClient(std::uint16_t port, int receive_buffer) : RawClient() {
  if (receive_buffer > 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  connect(port);
}

void RawClient::connect(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
}

RawClient::~RawClient() { close(); }

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawClient::fill() {
  char bytes[64 * 1024];
  const ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> RawClient::read_line() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!fill()) return std::nullopt;
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

std::optional<std::string> RawClient::read_exactly(std::size_t count) {
  while (buffer_.size() < count) {
    if (!fill()) return std::nullopt;
  }
  std::string out = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return out;
}

RawAnswer RawClient::read_head() {
  RawAnswer answer;
  const std::optional<std::string> status = read_line();
  if (!status || !status->starts_with("HTTP/1.1 ")) return answer;
  answer.status = std::stoi(status->substr(9));
  for (;;) {
    const std::optional<std::string> line = read_line();
    if (!line) return answer;
    if (line->empty()) break;
    const std::size_t colon = line->find(": ");
    std::string name = line->substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    answer.headers[name] = line->substr(colon + 2);
  }
  answer.whole = true;
  return answer;
}

std::optional<std::string> RawClient::read_chunk() {
  const std::optional<std::string> size = read_line();
  if (!size || size->empty()) return std::nullopt;
  const std::size_t bytes = std::stoul(*size, nullptr, 16);
  std::optional<std::string> data = read_exactly(bytes);
  const std::optional<std::string> line_end = read_line();
  if (!data || line_end != "") return std::nullopt;
  return data;
}

RawAnswer RawClient::read_answer(bool to_head) {
  RawAnswer answer = read_head();
  if (!answer.whole || to_head) return answer;
  if (const auto length = answer.headers.find("content-length"); length != answer.headers.end()) {
    std::optional<std::string> body = read_exactly(std::stoul(length->second));
    answer.whole = body.has_value();
    if (body) answer.body = std::move(*body);
  } else if (answer.headers.contains("transfer-encoding")) {
    for (;;) {
      std::optional<std::string> chunk = read_chunk();
      answer.whole = chunk.has_value();
      if (!chunk || chunk->empty()) break;
      answer.body += *chunk;
      answer.chunks.push_back(std::move(*chunk));
    }
  } else if (answer.headers.contains("connection") && answer.headers["connection"] == "close" &&
             answer.status != 204) {
    answer.body = read_rest();
  }
  return answer;
}

std::string RawClient::read_rest() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

bool RawClient::at_end() { return buffer_.empty() && !fill(); }

void RawClient::shut_down_sending() { shutdown(fd_, SHUT_WR); }

void RawClient::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void RawClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string request_text(std::string_view method, std::string_view target, std::string_view body,
                         std::string_view more_headers) {
  std::string out;
  out.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: test\r\n");
  out.append(more_headers);
  if (!body.empty()) out.append("Content-Length: ").append(std::to_string(body.size()) + "\r\n");
  out.append("\r\n").append(body);
  return out;
}

}  // namespace fermata::http
