#include "policy/pace.h"

#include "base/check.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace fermata::policy {
namespace {

// Weight of the newest observation. A quarter follows a growing context within a few steps and
// still averages out the noise of a busy machine.
constexpr double newest = 0.25;
// Of the time of steps, for mirrors: what a client can notice is far above.
constexpr double copy_share = 1.0 / 32;
constexpr std::int32_t samples_max = 16;
// Rows of the first piece beside decoding streams, before anything has been measured.
constexpr Tokens first_piece{16};

// Of the time of the decode rows. A stream's gap is then less than twice as long as without
// prompts, and where many prompts are new beside few streams no longer than if those decoded too.
constexpr double prompt_share_least = 0.5;
constexpr double prompt_share_most = 4.0;

void learn(double& mean, double value) {
  mean = mean == 0.0 ? value : mean + newest * (value - mean);
}

}  // namespace

void Pace::observe(std::int32_t decode_rows, Tokens prefill_rows, Micros took) {
  const auto us = static_cast<double>(std::max<std::int64_t>(took.value, 1));
  const std::size_t slot =
      std::min(static_cast<std::size_t>(decode_rows), decode_steps_.size() - 1);
  if (prefill_rows == Tokens(0)) {
    if (decode_rows == 0) return;
    DecodeStep& step = decode_steps_[slot];
    learn(step.us, us);
    step.samples = std::min(step.samples + 1, samples_max);
    return;
  }
  const auto rows = static_cast<double>(prefill_rows.value);
  if (decode_rows == 0) {
    learn(prefill_row_us_alone_, us / rows);
    return;
  }
  const auto decode = static_cast<double>(rates(decode_rows).decode_step.value);
  if (decode == 0.0) return;
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

// Of about so many rows, weighted by how often and how near: while a prompt is computed no step
// decodes alone, so one odd sample of this very number would stay the truth for long. Nothing near:
// the nearest.
Pace::Estimate Pace::decode_us(std::size_t rows) const {
  const auto away = [rows](std::size_t i) { return i > rows ? i - rows : rows - i; };
  const std::size_t near = std::max<std::size_t>(rows / 4, 1);
  double sum = 0.0, weights = 0.0;
  std::optional<std::size_t> nearest;
  for (std::size_t i = 0; i < decode_steps_.size(); ++i) {
    const DecodeStep& step = decode_steps_[i];
    if (step.samples == 0) continue;
    if (!nearest || away(i) < away(*nearest)) nearest = i;
    if (away(i) > near) continue;
    const double distance = 1.0 + static_cast<double>(away(i));
    const double weight = step.samples / (distance * distance);
    sum += weight * step.us;
    weights += weight;
  }
  if (weights > 0.0) return {sum / weights, true};
  return {nearest ? decode_steps_[*nearest].us : 0.0, false};
}

Rates Pace::rates(std::int32_t decode_rows) const {
  const std::size_t want =
      std::min(static_cast<std::size_t>(std::max(decode_rows, 0)), decode_steps_.size() - 1);
  const double row = prefill_row_us_beside_ > 0.0 ? prefill_row_us_beside_ : prefill_row_us_alone_;
  Rates out;
  const Estimate decode = decode_us(want);
  out.decode_step = Micros(std::llround(decode.us));
  out.decode_unknown = decode_rows > 0 && !decode.is_near;
  out.prefill_per_1k = Micros(std::llround(row * 1000.0));
  out.move_per_mib = Micros(std::llround(move_mib_us_));
  return out;
}

Tokens prefill_allowance(const Rates& rates, Micros step_budget, const Company& company,
                         Tokens batch_left) {
  FERMATA_CHECK(batch_left >= Tokens(1), "no row left in the batch");
  if (company.decoding == 0) return batch_left;
  if (rates.prefill_per_1k == Micros(0) || rates.decode_step == Micros(0))
    return std::min(first_piece, batch_left);
  const auto decode_us = static_cast<double>(rates.decode_step.value);
  const double share = std::clamp(static_cast<double>(company.prompts) / company.decoding,
                                  prompt_share_least, prompt_share_most);
  const std::int64_t left_us =
      step_budget > Micros(0) ? std::max<std::int64_t>((step_budget - rates.decode_step).value, 0)
                              : static_cast<std::int64_t>(decode_us * share);
  const Tokens rows{left_us * 1000 / rates.prefill_per_1k.value};
  return std::clamp(rows, Tokens(1), batch_left);
}

}  // namespace fermata::policy
