#include "http/transport.h"

#include <poll.h>

namespace fermata::http {

bool Transport::peer_has_closed() {
  pollfd ask{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return poll(&ask, 1, 0) > 0;
}

}  // namespace fermata::http
