// A client that sends exactly the bytes it is told to and sees exactly the bytes that come.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::http {

struct RawAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // Names in lower case.
  std::string body;                            // Chunks joined.
  std::vector<std::string> chunks;
  bool whole = false;  // It ended as its head says it ends.
};

// One connection to 127.0.0.1. Blocking; a read that gets nothing for 30 s ends as if the server
// had gone, so a broken server fails a test instead of hanging it.
class RawClient {
 public:
  RawClient();  // Has its socket; connect() is still to come.
  // A small `receive_buffer` makes a client that soon takes no more bytes.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void connect(std::uint16_t port);
  // False: the server does not take them any more.
  bool send(std::string_view bytes);

  // One whole answer. `to_head`: the request was HEAD.
  RawAnswer read_answer(bool to_head = false);
  // Only status line and headers; the body stays to be read.
  RawAnswer read_head();
  // The next chunk; empty at the last one. Nothing: the connection ended instead.
  std::optional<std::string> read_chunk();
  // Everything up to the end of the connection.
  std::string read_rest();
  // Whether the connection ends without another byte.
  bool at_end();

  void shut_down_sending();
  void reset();  // Ends the connection with RST.
  void close();  // Ends it with FIN.

 private:
  bool fill();  // False: the end.
  std::optional<std::string> read_line();
  std::optional<std::string> read_exactly(std::size_t count);

  int fd_ = -1;
  std::string buffer_;
};

// A request with a Content-Length when there is a body.
std::string request_text(std::string_view method, std::string_view target,
                         std::string_view body = "", std::string_view more_headers = "");

}  // namespace fermata::http
