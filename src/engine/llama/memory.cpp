// What LlamaEngine does to cells: cut, share, clear, move.
#include "base/check.h"
#include "base/log.h"
#include "engine/llama/context.h"
#include "engine/llama/engine.h"
#include "engine/llama/log_sink.h"

#include <algorithm>
#include <cstdint>
#include <exception>

namespace fermata::engine::llama {
namespace {

constexpr llama_seq_id scratch = 0;
static_assert(state_file_magic == LLAMA_STATE_SEQ_MAGIC &&
                  state_file_version == LLAMA_STATE_SEQ_VERSION,
              "files of slots are those of the pinned library");

llama_pos at(Tokens position) { return static_cast<llama_pos>(position.value); }

// Takes what is in the scratch sequence out again, however the scope ends.
class ScratchGuard {
 public:
  explicit ScratchGuard(llama_memory_t memory) : memory_(memory) {}
  ~ScratchGuard() { llama_memory_seq_rm(memory_, scratch, -1, -1); }
  ScratchGuard(const ScratchGuard&) = delete;
  ScratchGuard& operator=(const ScratchGuard&) = delete;

 private:
  llama_memory_t memory_;
};

// A model whose rope factors depend on the window has other cells beyond its original window.
bool has_long_rope_factors(const LlamaModel& model, Tokens window) {
  if (model.metadata(model.info().architecture + ".rope.scaling.type") != "longrope") return false;
  std::int64_t original = model.number("rope.scaling.original_context_length");
  if (original == 0) original = model.info().trained_window.value;
  return window.value > original;
}

}  // namespace

Tokens LlamaEngine::truncatable(Seat seat, Tokens want) const {
  const Tokens now = position(seat);
  const Tokens keep = std::clamp(want, Tokens(0), now);
  if (keep == now || kind_ == MemoryKind::attention) return keep;
  if (kind_ != MemoryKind::sliding_window) return Tokens(0);
  // Row `keep` looks back at sliding_window - 1 rows. Dropped ones are the oldest, so a shorter
  // prefix needs cells that are further gone.
  const Tokens oldest(llama_memory_seq_pos_min(memory(), sequence(seat)));
  const Tokens needed = std::max(Tokens(0), keep - sliding_window_);
  return oldest <= needed ? keep : Tokens(0);
}

EditOutcome LlamaEngine::truncate(Seat seat, Tokens keep) {
  FERMATA_CHECK(keep >= Tokens(0) && keep <= position(seat), "keeps more than there is");
  if (keep == Tokens(0)) {
    clear(seat);
    return EditOutcome::done;
  }
  if (truncatable(seat, keep) != keep) return EditOutcome::unsupported;
  if (keep == position(seat)) return EditOutcome::done;
  return llama_memory_seq_rm(memory(), sequence(seat), at(keep), -1) ? EditOutcome::done
                                                                     : EditOutcome::unsupported;
}

void LlamaEngine::clear(Seat seat) { llama_memory_seq_rm(memory(), sequence(seat), -1, -1); }

EditOutcome LlamaEngine::share_prefix(Seat from, Seat to, Tokens n) {
  FERMATA_CHECK(from != to && position(to) == Tokens(0), "shares into a seat that is not empty");
  FERMATA_CHECK(n >= Tokens(1) && n <= position(from), "shares more than there is");
  if (!capabilities_.share_prefix) return EditOutcome::unsupported;
  llama_memory_seq_cp(memory(), sequence(from), sequence(to), 0, at(n));
  return EditOutcome::done;
}

ShiftOutcome LlamaEngine::shift(Seat seat, Tokens keep, Tokens discard) {
  const Tokens end = position(seat);
  FERMATA_CHECK(keep >= Tokens(0) && discard > Tokens(0) && keep + discard < end, "no such shift");
  if (!capabilities_.shift) return ShiftOutcome::unsupported;
  const llama_seq_id id = sequence(seat);
  if (!llama_memory_seq_rm(memory(), id, at(keep), at(keep + discard))) {
    return ShiftOutcome::unsupported;
  }
  llama_memory_seq_add(memory(), id, at(keep + discard), at(end), -at(discard));
  // The library turns the keys only when it computes next, and until then would write the old ones
  // out: so one row is computed, and dropped. It need not find room.
  batch_.clear();
  cancelling_.clear();
  batch_.add(TokenId{0}, end - discard, id, false);
  const CallOutcome outcome = call_library();
  llama_memory_seq_rm(memory(), id, at(end - discard), -1);
  return outcome == CallOutcome::broken ? ShiftOutcome::broken : ShiftOutcome::done;
}

void LlamaEngine::learn_range_format(const LlamaModel& model) {
  CacheShape shape = model.memory().cells;
  shape.k = ggml_type_of(geometry_.cache_type_k);
  shape.v = ggml_type_of(geometry_.cache_type_v);
  const LibraryErrors errors(LibraryErrors::Echo::nothing);
  // Whether flash attention is really on decides the layout of V; only the library knows.
  for (const bool transposed : {false, true}) {
    shape.v_transposed = transposed;
    const std::vector<std::byte> probe = shape.one_cell();
    const ScratchGuard guard(memory());
    const std::size_t read = llama_state_seq_set_data(
        context_.get(), reinterpret_cast<const std::uint8_t*>(probe.data()), probe.size(), scratch);
    if (read != probe.size() ||
        llama_state_seq_get_size(context_.get(), scratch) != shape.state_bytes(Tokens(1))) {
      continue;
    }
    Digest format;
    format.add(model.identity().data(), model.identity().size());
    format.add(library_version()).add(LLAMA_STATE_SEQ_VERSION);
    format.add(model.info().architecture).add(static_cast<std::int64_t>(shape.layers.size()));
    format.add(shape.k).add(shape.v).add(transposed ? 1 : 0);
    format.add(has_long_rope_factors(model, limits_.window) ? 1 : 0);
    ranges_ = std::make_shared<RangeCodec>(shape, format.finish());
    return;
  }
  log_warn("this model's cells are written in a way that is not known: they cannot be moved");
}

Bytes LlamaEngine::range_bytes(Tokens n) const {
  return Bytes(ranges_ ? static_cast<std::int64_t>(ranges_->size_of(n)) : 0);
}

Result<void, MoveFault> LlamaEngine::export_range(Seat seat, Tokens begin, Tokens end,
                                                  ByteBuffer& into) {
  FERMATA_CHECK(Tokens(0) <= begin && begin < end && end <= position(seat), "no such range");
  if (!ranges_) return Err{MoveFault::unsupported};
  if (!resize(into, ranges_->size_of(end - begin))) return Err{MoveFault::no_room};
  ranges_->write_header(into, begin, end);
  const auto state = std::span(into).subspan(RangeCodec::header_bytes);
  if (!export_cells(seat, begin, end, state)) return Err{MoveFault::unsupported};
  return {};
}

bool LlamaEngine::export_cells(Seat seat, Tokens begin, Tokens end, std::span<std::byte> into) {
  const ScratchGuard guard(memory());
  llama_memory_seq_cp(memory(), sequence(seat), scratch, at(begin), at(end));
  const std::size_t written = llama_state_seq_get_data(
      context_.get(), reinterpret_cast<std::uint8_t*>(into.data()), into.size(), scratch);
  if (written == 0) {
    log_error("libllama cannot write the cells of a range");
    return false;
  }
  FERMATA_CHECK(written == into.size(), "the library wrote a range of another size");
  return true;
}

Result<void, MoveFault> LlamaEngine::import_range(Seat seat, std::span<const std::byte> bytes) {
  if (!ranges_) return Err{MoveFault::unsupported};
  const auto range = ranges_->read(bytes);
  if (!range) return Err{MoveFault::foreign};
  FERMATA_CHECK(range->begin == position(seat), "a range that does not continue its sequence");
  if (range->end > limits_.window) return Err{MoveFault::no_room};
  if (!import_cells(seat, range->begin, range->end, range->state)) return Err{MoveFault::no_room};
  return {};
}

// The bytes are known to be whole and ours: all that can be missing is room.
bool LlamaEngine::import_cells(Seat seat, Tokens begin, Tokens end,
                               std::span<const std::byte> state) {
  const ScratchGuard guard(memory());
  const LibraryErrors errors(LibraryErrors::Echo::nothing);
  const std::size_t read = llama_state_seq_set_data(
      context_.get(), reinterpret_cast<const std::uint8_t*>(state.data()), state.size(), scratch);
  if (read == 0) return false;
  llama_memory_seq_cp(memory(), scratch, sequence(seat), at(begin), at(end));
  return true;
}

Result<void, MoveFault> LlamaEngine::export_state(Seat seat, ByteBuffer& into) {
  const Tokens all = position(seat);
  FERMATA_CHECK(all > Tokens(0), "the state of nothing");
  if (!ranges_) return Err{MoveFault::unsupported};
  const std::size_t size = ranges_->size_of(all) - RangeCodec::header_bytes;
  if (!resize(into, size)) return Err{MoveFault::no_room};
  if (!export_cells(seat, Tokens(0), all, into)) return Err{MoveFault::unsupported};
  return {};
}

bool LlamaEngine::is_state(Tokens tokens, std::span<const std::byte> state) const {
  return ranges_ && ranges_->is_state(tokens, state);
}

Result<void, MoveFault> LlamaEngine::import_state(Seat seat, Tokens tokens,
                                                  std::span<const std::byte> state) {
  FERMATA_CHECK(position(seat) == Tokens(0), "a state onto another");
  if (!ranges_) return Err{MoveFault::unsupported};
  if (!ranges_->is_state(tokens, state)) return Err{MoveFault::foreign};
  const bool fits = tokens <= limits_.window;
  if (!fits || !import_cells(seat, Tokens(0), tokens, state)) return Err{MoveFault::no_room};
  return {};
}

}  // namespace fermata::engine::llama
