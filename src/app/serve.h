// `fermata serve`: load, listen, answer until a signal.
#pragma once

#include "settings/parse.h"

#include <span>
#include <string_view>

namespace fermata::app {

// Exit codes, one for each hopeless start, so that scripts can tell them apart.
enum class Exit : int {
  ok = 0,
  failed = 1,      // Anything without a code of its own.
  usage = 2,       // Arguments or environment.
  no_library = 3,  // libllama cannot be used.
  no_model = 4,    // The model cannot be loaded.
  no_context = 5,  // No context of this geometry can be built.
  no_port = 6,     // The address cannot be listened on, or not with this TLS key.
};

// Blocks until SIGINT or SIGTERM. The first ends gracefully: no new connections, requests go on for
// at most --shutdown-timeout, then end with an error event. The second ends at once.
// REQUIRES: no other thread runs yet.
Exit run_serve(std::span<const std::string_view> args, const settings::Environment& environment);

}  // namespace fermata::app
