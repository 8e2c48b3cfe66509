// What tests have the engine compute, booked in the pool as the scheduler does.
#pragma once

#include "engine/engine.h"
#include "kv/pool.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::kv {

inline std::vector<TokenId> tokens_of(const std::string& text) {
  std::vector<TokenId> out;
  for (const char c : text) out.push_back(TokenId{static_cast<unsigned char>(c)});
  return out;
}

// Behind what a busy seat holds, in one step.
inline void compute(engine::Engine& engine, Pool& pool, Seat seat,
                    const std::vector<TokenId>& tokens) {
  engine::RowGroup group;
  group.seat = seat;
  group.first = engine.position(seat);
  group.tokens = tokens;
  engine::GroupResult result;
  ASSERT_EQ(engine.step({&group, 1}, {&result, 1}), engine::StepOutcome::done);
  pool.appended(seat, tokens);
}

}  // namespace fermata::kv
