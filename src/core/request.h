// What a client asked for, once its JSON has become values.
#pragma once

#include "base/types.h"
#include "core/sampling_params.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fermata {

// Whose request it is: a digest of the API key, all zero without keys. Conversations of one owner
// are nothing that another could start from.
using Owner = std::array<std::byte, 32>;

// One sequence to generate. Immutable after submission; shared by the scheduler and /slots.
struct Request {
  RequestId id;
  std::vector<TokenId> prompt;  // Never empty.
  Tokens max_tokens{-1};        // -1: until the window is full. 0: only compute the prompt.
  SamplingParams sampling;
  std::vector<std::string> stop;  // Non-empty words; generation ends before the first of them.
  bool cache_prompt = true;       // May start from cells that are resident already.
  std::optional<Seat> seat;       // id_slot: only this seat will do.
  // 0: no limit. Counted from the first token; the reply ends with the first line that ends later.
  Micros predict_time_max{0};
  std::int32_t n_indent = 0;    // Blanks that lines after the first must begin with.
  Tokens n_keep{0};             // Of the prompt, when the context is shifted; -1: all of it.
  Tokens n_discard{0};          // Tokens that a shift drops; 0: half of the others.
  bool special = false;         // Control tokens are part of the text.
  bool wants_progress = false;  // Of the prompt.
  bool wants_timings = false;   // With every token.
  std::int32_t priority = 0;    // Higher goes first when something has to wait.
  Owner owner{};
  std::string conversation;  // The page that keeps it, by name; empty: the client gave none.
  GroupId group{};           // Of requests with the same prompt, submitted in a row.
  // Turns true when the client wants no more thoughts, on any thread. Null: it cannot say so.
  std::shared_ptr<const std::atomic<bool>> end_thoughts;
};

}  // namespace fermata
