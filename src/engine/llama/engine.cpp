#include "engine/llama/engine.h"

#include "base/check.h"
#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/llama/context.h"
#include "engine/llama/log_sink.h"
#include "engine/llama/model_file.h"
#include "engine/llama/sampler.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <exception>
#include <utility>

namespace fermata::engine::llama {
namespace {

// Logits in all, of a step: fewer are gone through sooner than another thread wakes up.
constexpr std::int64_t parallel_from = 1 << 16;

bool is_cancelled(const RowGroup& group) {
  return group.cancelled != nullptr && group.cancelled->load(std::memory_order_relaxed);
}

bool is_attention(MemoryKind kind) {
  return kind == MemoryKind::attention || kind == MemoryKind::sliding_window;
}

bool computed_any(std::span<const GroupResult> results) {
  return std::any_of(results.begin(), results.end(),
                     [](const GroupResult& result) { return result.computed > Tokens(0); });
}

bool computed_all(std::span<const RowGroup> groups, std::span<const GroupResult> results) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (results[i].computed.value < static_cast<std::int64_t>(groups[i].tokens.size())) {
      return false;
    }
  }
  return true;
}

}  // namespace

Batch::Batch(std::int32_t rows_max) : batch_(llama_batch_init(rows_max, 0, 1)) { clear(); }

Batch::~Batch() { llama_batch_free(batch_); }

void Batch::add(TokenId token, Tokens position, llama_seq_id sequence, bool output) {
  const std::int32_t row = batch_.n_tokens++;
  batch_.token[row] = raw(token);
  batch_.pos[row] = static_cast<llama_pos>(position.value);
  batch_.n_seq_id[row] = 1;
  batch_.seq_id[row][0] = sequence;
  batch_.logits[row] = output ? 1 : 0;
}

Result<std::unique_ptr<Engine>, BuildFault> build_engine(const LlamaModel& model,
                                                         const Geometry& geometry,
                                                         const EngineOptions& options) {
  Geometry wanted = geometry;
  if (wanted.n_ctx == Tokens(0)) wanted.n_ctx = model.info().trained_window;
  if (std::string fault = find_build_fault(model, wanted, options); !fault.empty()) {
    return Err{BuildFault{std::move(fault)}};
  }
  const LibraryErrors errors;
  try {
    Threadpools pools = Threadpools::make(options);
    llama_context_ptr context(
        llama_init_from_model(model.handle(), context_params(model, wanted, options)));
    if (!context) {
      return Err{BuildFault{"no context of " + std::to_string(wanted.n_ctx.value) +
                            " cells can be made: " + errors.reason("the library gives no reason")}};
    }
    return std::unique_ptr<Engine>(std::make_unique<LlamaEngine>(
        model, std::move(pools), std::move(context), wanted, options));
  } catch (const std::exception& e) {
    return Err{BuildFault{std::string("no context can be made: ") + e.what()}};
  }
}

namespace {

// Of all that the bytes of a sequence depend on, beside what it holds.
std::uint64_t snapshot_mark(const LlamaModel& model, const Geometry& geometry,
                            const EngineOptions& options) {
  const bool counts_seats = geometry.layout == Layout::split;
  Digest digest;
  digest.add(model.identity().data(), model.identity().size());
  digest.add(std::string(name(geometry.cache_type_k)));
  digest.add(std::string(name(geometry.cache_type_v)));
  digest.add(library_version()).add(LLAMA_STATE_SEQ_VERSION);
  digest.add(counts_seats ? geometry.n_parallel : 0);
  digest.add(std::int64_t{options.flash_attention}).add(std::int64_t{options.swa_full});
  const Fingerprint all = digest.finish();
  std::uint64_t out = 0;
  std::memcpy(&out, all.data(), sizeof out);
  return out;
}

}  // namespace

LlamaEngine::LlamaEngine(const LlamaModel& model, Threadpools pools, llama_context_ptr context,
                         const Geometry& geometry, const EngineOptions& options)
    : kind_(model.info().kind),
      sliding_window_(model.info().sliding_window),
      n_vocab_(model.info().n_vocab),
      geometry_(geometry),
      pools_(std::move(pools)),
      context_(std::move(context)),
      snapshot_mark_(snapshot_mark(model, geometry, options)),
      batch_(static_cast<std::int32_t>(llama_n_ubatch(context_.get()))),
      samplers_(std::min(sensible_threads(options.threads), geometry.n_parallel) - 1) {
  pools_.attach(context_.get());
  geometry_.n_ctx = Tokens(llama_n_ctx(context_.get()));
  limits_ = EngineLimits{
      .cells = geometry_.n_ctx,
      .window = Tokens(llama_n_ctx_seq(context_.get())),
      .seats = geometry_.n_parallel,
      .batch = Tokens(llama_n_batch(context_.get())),
      .ubatch = Tokens(llama_n_ubatch(context_.get())),
  };
  // Each group is a call of its own, so that the library's batch is no limit of a step.
  if (options.one_sequence_per_ubatch) {
    limits_.batch = std::max(limits_.batch, limits_.ubatch + Tokens(limits_.seats));
  }
  if (has_scratch(model, geometry_.layout)) {
    first_seat_ = 1;
    learn_range_format(model);
  }
  capabilities_ = Capabilities{
      .truncate_anywhere = kind_ == MemoryKind::attention,
      .share_prefix = first_seat_ == 1,
      .move_ranges = ranges_ != nullptr,
      .ranges_are_cheap = ranges_ && !ranges_->v_transposed(),
      .move_sequences = true,
      .cancel_in_ubatch = is_attention(kind_) && model.on_cpu_only(),
      .cells_per_token = kind_ != MemoryKind::recurrent,
      .one_sequence_per_ubatch = options.one_sequence_per_ubatch,
      .shift = kind_ == MemoryKind::attention && llama_memory_can_shift(memory()),
  };
  // Elsewhere an aborted ubatch would move the position of a neighbour.
  if (capabilities_.cancel_in_ubatch) {
    llama_set_abort_callback(context_.get(), &LlamaEngine::should_abort, this);
  }
  const auto seats = static_cast<std::size_t>(limits_.seats);
  slices_.reserve(seats);
  cancelling_.reserve(seats);
  sampling_.reserve(seats);
}

LlamaEngine::~LlamaEngine() = default;

llama_seq_id LlamaEngine::sequence(Seat seat) const {
  FERMATA_CHECK(seat.value >= 0 && seat.value < limits_.seats, "no such seat");
  return first_seat_ + seat.value;
}

Tokens LlamaEngine::position(Seat seat) const {
  return Tokens(llama_memory_seq_pos_max(memory(), sequence(seat)) + 1);
}

void LlamaEngine::check_step(std::span<const RowGroup> groups,
                             std::span<GroupResult> results) const {
  FERMATA_CHECK(results.size() == groups.size(), "one result for each group");
  Tokens rows(0);
  std::bitset<n_parallel_max> seen;
  for (const RowGroup& group : groups) {
    const auto seat = static_cast<std::size_t>(sequence(group.seat) - first_seat_);
    FERMATA_CHECK(!seen.test(seat), "two groups of one seat in a step");
    seen.set(seat);
    const Tokens count(static_cast<std::int64_t>(group.tokens.size()));
    FERMATA_CHECK(count > Tokens(0), "a group without rows");
    FERMATA_CHECK(group.first == position(group.seat), "a group does not continue its sequence");
    FERMATA_CHECK(group.first + count <= limits_.window, "a group beyond the window");
    for (const TokenId token : group.tokens) {
      FERMATA_CHECK(raw(token) >= 0 && raw(token) < n_vocab_, "a token outside the vocabulary");
    }
    rows += count;
  }
  FERMATA_CHECK(rows > Tokens(0) && rows <= limits_.batch, "a step of no or too many rows");
}

StepOutcome LlamaEngine::step(std::span<const RowGroup> groups, std::span<GroupResult> results) {
  check_step(groups, results);
  for (GroupResult& result : results) {
    result.computed = Tokens(0);
    result.sampled.reset();
    result.sampler_failed = false;
  }
  while (fill(groups, results)) {
    const CallOutcome outcome = call_library();
    if (outcome == CallOutcome::no_room) {
      return computed_any(results) ? StepOutcome::interrupted : StepOutcome::no_room;
    }
    account(groups, results, outcome);
    if (outcome == CallOutcome::broken) return StepOutcome::broken;
    if (outcome == CallOutcome::done) sample(groups, results);
  }
  return computed_all(groups, results) ? StepOutcome::done : StepOutcome::interrupted;
}

bool LlamaEngine::fill(std::span<const RowGroup> groups, std::span<const GroupResult> results) {
  batch_.clear();
  slices_.clear();
  cancelling_.clear();
  bool all_can_be_cancelled = true;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const RowGroup& group = groups[i];
    const auto total = static_cast<std::int64_t>(group.tokens.size());
    const std::int64_t done = results[i].computed.value;
    if (done == total || is_cancelled(group)) continue;
    const std::int64_t room = limits_.ubatch.value - batch_.rows();
    if (room == 0) break;
    const std::int64_t count = std::min(room, total - done);
    for (std::int64_t j = done; j < done + count; ++j) {
      const bool last = j + 1 == total;
      batch_.add(group.tokens[static_cast<std::size_t>(j)], group.first + Tokens(j),
                 sequence(group.seat), last && group.sampler != nullptr);
    }
    slices_.push_back(Slice{i, Tokens(count), batch_.rows() - 1});
    if (group.cancelled == nullptr) {
      all_can_be_cancelled = false;
    } else {
      cancelling_.push_back(group.cancelled);
    }
    if (capabilities_.one_sequence_per_ubatch) break;
  }
  if (!all_can_be_cancelled) cancelling_.clear();
  return batch_.rows() > 0;
}

bool LlamaEngine::should_abort(void* engine) {
  const auto& cancelling = static_cast<const LlamaEngine*>(engine)->cancelling_;
  if (cancelling.empty()) return false;
  return std::all_of(cancelling.begin(), cancelling.end(), [](const std::atomic<bool>* cancelled) {
    return cancelled->load(std::memory_order_relaxed);
  });
}

LlamaEngine::CallOutcome LlamaEngine::call_library() {
  // No room and a cancellation are answers; only a failure is worth a line.
  const LibraryErrors errors(LibraryErrors::Echo::nothing);
  std::int32_t code = 0;
  try {
    code = llama_decode(context_.get(), batch_.get());
  } catch (const std::exception& e) {
    log_error("libllama failed in a step: {}", e.what());
    return CallOutcome::broken;
  }
  cancelling_.clear();  // Their owners may end once the step returns.
  if (code == 0) return CallOutcome::done;
  if (code == 1) return CallOutcome::no_room;
  if (code == 2) return CallOutcome::aborted;
  log_error("libllama failed in a step with code {}: {}", code, errors.reason("no reason given"));
  return CallOutcome::broken;
}

void LlamaEngine::account(std::span<const RowGroup> groups, std::span<GroupResult> results,
                          CallOutcome outcome) {
  for (const Slice& slice : slices_) {
    GroupResult& result = results[slice.group];
    const RowGroup& group = groups[slice.group];
    if (outcome == CallOutcome::done) {
      result.computed += slice.count;
    } else {
      // The library has dropped the ubatch that failed, earlier ones of the call may have stayed.
      result.computed =
          std::clamp(position(group.seat) - group.first, Tokens(0), result.computed + slice.count);
    }
  }
}

void LlamaEngine::sample(std::span<const RowGroup> groups, std::span<GroupResult> results) {
  sampling_.clear();
  for (const Slice& slice : slices_) {
    const RowGroup& group = groups[slice.group];
    const auto total = static_cast<std::int64_t>(group.tokens.size());
    if (group.sampler == nullptr || results[slice.group].computed.value < total) continue;
    auto* sampler = dynamic_cast<LlamaSampler*>(group.sampler);
    FERMATA_CHECK(sampler != nullptr, "a sampler of another engine");
    sampling_.push_back({sampler, slice.group, slice.last_row});
  }
  // The first look at the logits waits for them and may put them in order; later ones only read.
  for (const Sampling& each : sampling_) (void)llama_get_logits_ith(context_.get(), each.row);
  const auto one = [&](std::size_t i) {
    GroupResult& result = results[sampling_[i].group];
    result.sampled = sampling_[i].sampler->sample(context_.get(), sampling_[i].row);
    result.sampler_failed = !result.sampled.has_value();
  };
  const bool worth_it = sampling_.size() > 1 &&
                        static_cast<std::int64_t>(sampling_.size()) * n_vocab_ >= parallel_from;
  if (worth_it) {
    samplers_.run(sampling_.size(), one);
  } else {
    for (std::size_t i = 0; i < sampling_.size(); ++i) one(i);
  }
}

}  // namespace fermata::engine::llama
