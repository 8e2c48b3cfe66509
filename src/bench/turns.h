// Turns of conversations, as a client that sends its whole transcript takes them.
#pragma once

#include "base/result.h"
#include "bench/report.h"

#include <string>
#include <vector>

namespace fermata::bench {

// So many tokens; different from the first on for each of up to 900 conversations.
std::vector<int> prompt_of(int length, int conversation);

// POST /completion of exactly so many tokens, which may start from what is kept.
Json turn(const std::vector<int>& prompt, int tokens);

struct Turn {
  double first_token_ms = 0.0;
  double computed = 0.0;      // Tokens of the prompt.
  double computing_ms = 0.0;  // These, as the server says.
  std::vector<int> tokens;    // Of the reply.
};

// Error: one line, also where the reply has not that many tokens.
Result<Turn, std::string> take_turn(int port, const std::vector<int>& prompt, int tokens);

}  // namespace fermata::bench
