// What a client asked for, once its JSON has become values.
#pragma once

#include "base/types.h"
#include "core/sampling_params.h"

#include <optional>
#include <string>
#include <vector>

namespace fermata {

// One sequence to generate. Immutable after submission; shared by the scheduler and /slots.
struct Request {
  RequestId id;
  std::vector<TokenId> prompt;  // Never empty.
  Tokens max_tokens{-1};        // -1: until the window is full. 0: only compute the prompt.
  SamplingParams sampling;
  std::vector<std::string> stop;  // Non-empty words; generation ends before the first of them.
  bool cache_prompt = true;       // May start from cells that are resident already.
  std::optional<Seat> seat;       // id_slot: only this seat will do.
  Micros predict_time_max{0};     // 0: no limit. Counted from the first token.
  std::int32_t priority = 0;      // Higher goes first when something has to wait.
  GroupId group{};                // Of requests with the same prompt, submitted together.
};

}  // namespace fermata
