#include "policy/pace.h"

#include "base/check.h"

#include <algorithm>
#include <cmath>

namespace fermata::policy {
namespace {

// Weight of the newest observation. A quarter follows a growing context within a few steps and
// still averages out the noise of a busy machine.
constexpr double newest = 0.25;
// Of the time of steps, for mirrors: what a client can notice is far above.
constexpr double copy_share = 1.0 / 32;
// Rows of the first piece beside decoding streams, before anything has been measured.
constexpr Tokens first_piece{16};

void learn(double& mean, double value) {
  mean = mean == 0.0 ? value : mean + newest * (value - mean);
}

}  // namespace

void Pace::observe(std::int32_t decode_rows, Tokens prefill_rows, Micros took) {
  const auto us = static_cast<double>(std::max<std::int64_t>(took.value, 1));
  const std::size_t slot =
      std::min(static_cast<std::size_t>(decode_rows), decode_step_us_.size() - 1);
  if (prefill_rows == Tokens(0)) {
    if (decode_rows > 0) learn(decode_step_us_[slot], us);
    return;
  }
  const auto rows = static_cast<double>(prefill_rows.value);
  if (decode_rows == 0) {
    learn(prefill_row_us_alone_, us / rows);
    return;
  }
  const auto decode = static_cast<double>(rates(decode_rows).decode_step.value);
  if (decode == 0.0) {
    // Nobody has decoded alone yet: take what prefill does not explain, or half, as a first guess.
    const double prefill = prefill_row_us_alone_ * rows;
    learn(decode_step_us_[slot], prefill > 0.0 && prefill < us * 0.9 ? us - prefill : us / 2.0);
    return;
  }
  // Never less than a tenth of the plain share: a step that beat its estimate is luck, not free.
  learn(prefill_row_us_beside_, std::max(us - decode, us / 10.0) / rows);
}

void CopyPace::stepped(Micros took) {
  const double share = static_cast<double>(took.value) * copy_share;
  // Saved up for one block at most: a burst would be felt.
  credit_us_ = std::min(credit_us_ + share, std::max(block_us_, share));
}

void CopyPace::copied(Micros took, std::int32_t blocks) {
  const auto us = static_cast<double>(std::max<std::int64_t>(took.value, 1));
  credit_us_ -= us;
  if (blocks > 0) learn(block_us_, us / blocks);
}

std::int32_t CopyPace::blocks() const {
  if (credit_us_ <= 0.0) return 0;
  if (block_us_ == 0.0) return 1;
  return static_cast<std::int32_t>(std::clamp(credit_us_ / block_us_, 1.0, 64.0));
}

void Pace::observe_move(Bytes bytes, Micros took) {
  if (bytes <= Bytes(0)) return;
  const double mib = static_cast<double>(bytes.value) / static_cast<double>(1 << 20);
  learn(move_mib_us_, static_cast<double>(took.value) / mib);
}

Rates Pace::rates(std::int32_t decode_rows) const {
  const std::size_t want =
      std::min(static_cast<std::size_t>(std::max(decode_rows, 0)), decode_step_us_.size() - 1);
  double decode = decode_step_us_[want];
  // Not measured at this number: the nearest smaller one scaled up is too high for a machine that
  // is bound by memory; the nearest known one as it is errs by one estimate only.
  for (std::size_t away = 1; decode == 0.0 && away < decode_step_us_.size(); ++away) {
    if (want >= away) decode = decode_step_us_[want - away];
    if (decode == 0.0 && want + away < decode_step_us_.size())
      decode = decode_step_us_[want + away];
  }
  const double row = prefill_row_us_beside_ > 0.0 ? prefill_row_us_beside_ : prefill_row_us_alone_;
  Rates out;
  out.decode_step = Micros(std::llround(decode));
  out.prefill_per_1k = Micros(std::llround(row * 1000.0));
  out.move_per_mib = Micros(std::llround(move_mib_us_));
  return out;
}

Tokens prefill_allowance(const Rates& rates, Micros step_budget, bool anyone_decodes,
                         Tokens batch_left) {
  FERMATA_CHECK(batch_left >= Tokens(1), "no row left in the batch");
  if (!anyone_decodes) return batch_left;
  if (rates.prefill_per_1k == Micros(0) || rates.decode_step == Micros(0))
    return std::min(first_piece, batch_left);
  const Micros budget = step_budget > Micros(0) ? step_budget : rates.decode_step * 2;
  const std::int64_t left_us = std::max<std::int64_t>(budget.value - rates.decode_step.value, 0);
  const Tokens rows{left_us * 1000 / rates.prefill_per_1k.value};
  return std::clamp(rows, Tokens(1), batch_left);
}

}  // namespace fermata::policy
