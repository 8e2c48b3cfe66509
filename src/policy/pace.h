// Learns from finished steps what rows cost on this machine, so that prompts are cut into pieces
// that fit beside decoding streams, and what it costs to move a sequence. Deterministic: equal
// observations give equal rates.
#pragma once

#include "base/types.h"
#include "policy/policy.h"

#include <vector>

namespace fermata::policy {

class Pace {
 public:
  // One step took so long. Steps with decode rows only teach the cost of decoding, those with
  // prefill rows the cost of a row of prefill beside it.
  void observe(std::int32_t decode_rows, Tokens prefill_rows, Micros took);

  // So many bytes of a sequence were copied into the engine.
  void observe_move(Bytes bytes, Micros took);

  // For a step with so many decode rows.
  Rates rates(std::int32_t decode_rows) const;

 private:
  struct DecodeStep {
    double us = 0.0;
    std::int32_t samples = 0;  // Steps without prefill.
  };
  struct Estimate {
    double us = 0.0;       // 0: nothing is known.
    bool is_near = false;  // From steps of about so many rows.
  };
  Estimate decode_us(std::size_t rows) const;

  // By number of decode rows. The last entry stands for all larger numbers.
  std::vector<DecodeStep> decode_steps_ = std::vector<DecodeStep>(257);
  double prefill_row_us_alone_ = 0.0;   // In steps of prefill only.
  double prefill_row_us_beside_ = 0.0;  // In steps that decode too.
  double move_mib_us_ = 0.0;
};

// How much of the time copies in the background may take: a share of the steps, spread evenly.
class CopyPace {
 public:
  void stepped(Micros took);
  void copied(Micros took, std::int32_t blocks);
  // Blocks that may be copied now. The first ones are on trust: nothing is known yet.
  std::int32_t blocks() const;

 private:
  double block_us_ = 0.0;  // Of one block; 0: never copied one.
  double credit_us_ = 1.0;
};

// Who shares a step.
struct Company {
  std::int32_t decoding = 0;  // Rows that each go on one token.
  std::int32_t prompts = 0;   // Of sequences in prefill.
};

// The rows of prefill that fit into a step; at least 1, so that a prompt always advances. Without a
// budget prompts get half of what the decode rows take, or as much for each prompt as for
// each decode row where that is more, up to four times as much.
// REQUIRES: batch_left >= 1.
Tokens prefill_allowance(const Rates& rates, Micros step_budget, const Company& company,
                         Tokens batch_left);

}  // namespace fermata::policy
