#include "engine/fake/fake_engine.h"

#include "base/check.h"
#include "engine/fake/fake_sampler.h"
#include "engine/fake/fake_vocabulary.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace fermata::engine::fake {
namespace {

constexpr std::int64_t cell_padding = 16;  // The library pads too; smaller here, to be easy to hit.

constexpr std::int64_t pad(std::int64_t n) {
  return (n + cell_padding - 1) / cell_padding * cell_padding;
}

// A moved cell as bytes; `model` keeps foreign bytes out.
struct MovedCell {
  std::uint64_t model;
  std::int32_t token, position, shape, company;
};

std::uint64_t model_mark(const FakeModelSpec& spec) {
  return mix64(spec.seed * 4 + static_cast<std::uint64_t>(spec.kind));
}

EngineLimits limits_of(const Geometry& geometry, const EngineOptions& options,
                       const FakeModelSpec& spec) {
  EngineLimits limits;
  const std::int64_t asked =
      geometry.n_ctx.value > 0 ? geometry.n_ctx.value : spec.trained_window.value;
  if (geometry.layout == Layout::pooled) {
    limits.cells = limits.window = Tokens(pad(asked));
  } else {
    limits.window = Tokens(pad((asked + geometry.n_parallel - 1) / geometry.n_parallel));
    limits.cells = limits.window * geometry.n_parallel;
  }
  limits.seats = geometry.n_parallel;
  limits.batch = std::max(options.n_batch, Tokens(geometry.n_parallel));
  limits.ubatch = std::min(options.n_ubatch, limits.batch);
  if (options.one_sequence_per_ubatch) {
    limits.batch = std::max(limits.batch, limits.ubatch + Tokens(limits.seats));
  }
  return limits;
}

Capabilities capabilities_of(const Geometry& geometry, const EngineOptions& options,
                             MemoryKind kind) {
  const bool attention = kind == MemoryKind::attention;
  const bool pooled = geometry.layout == Layout::pooled;
  return {.truncate_anywhere = attention,
          .share_prefix = attention && pooled,
          .move_ranges = attention && pooled,
          .ranges_are_cheap = attention && pooled,
          .move_sequences = true,
          .cancel_in_ubatch = attention || kind == MemoryKind::sliding_window,
          .cells_per_token = kind != MemoryKind::recurrent,
          .one_sequence_per_ubatch = options.one_sequence_per_ubatch,
          .shift = attention};
}

}  // namespace

FakeEngine::FakeEngine(const FakeModelSpec& spec, const Geometry& geometry,
                       const EngineOptions& options)
    : spec_(spec),
      geometry_(geometry),
      limits_(limits_of(geometry, options, spec)),
      capabilities_(capabilities_of(geometry, options, spec.kind)),
      random_(spec.seed),
      cells_(static_cast<std::size_t>(limits_.cells.value)),
      sequences_(static_cast<std::size_t>(limits_.seats)) {
  geometry_.n_ctx = limits_.cells;
  free_.reserve(cells_.size());
  for (std::size_t i = cells_.size(); i-- > 0;) free_.push_back(static_cast<std::int32_t>(i));
}

FakeEngine::Sequence& FakeEngine::sequence(Seat seat) {
  FERMATA_CHECK(seat.value >= 0 && seat.value < limits_.seats, "a seat that does not exist");
  return sequences_[static_cast<std::size_t>(seat.value)];
}

const FakeEngine::Sequence& FakeEngine::sequence(Seat seat) const {
  FERMATA_CHECK(seat.value >= 0 && seat.value < limits_.seats, "a seat that does not exist");
  return sequences_[static_cast<std::size_t>(seat.value)];
}

void FakeEngine::check_groups(std::span<const RowGroup> groups) const {
  std::bitset<n_parallel_max + 1> seen;
  Tokens rows{0};
  for (const RowGroup& group : groups) {
    FERMATA_CHECK(group.first == position(group.seat), "rows do not continue their sequence");
    const auto index = static_cast<std::size_t>(group.seat.value);
    FERMATA_CHECK(!seen.test(index), "two groups of one seat in a step");
    seen.set(index);
    FERMATA_CHECK(!group.tokens.empty(), "a group without rows");
    const Tokens k{static_cast<std::int64_t>(group.tokens.size())};
    FERMATA_CHECK(group.first + k <= limits_.window, "rows beyond the window");
    for (TokenId token : group.tokens) {
      FERMATA_CHECK(raw(token) >= 0 && raw(token) < n_vocab, "a token outside the vocabulary");
    }
    rows += k;
  }
  FERMATA_CHECK(rows >= Tokens(1) && rows <= limits_.batch, "rows outside the batch limit");
}

std::int64_t FakeEngine::rows_free(Seat seat) const {
  if (!capabilities_.cells_per_token) return std::numeric_limits<std::int64_t>::max();
  if (geometry_.layout == Layout::pooled) return static_cast<std::int64_t>(free_.size());
  return limits_.window.value - position(seat).value;
}

void FakeEngine::append(Seat seat, const Cell& cell) {
  Sequence& to = sequence(seat);
  if (!capabilities_.cells_per_token && free_.empty()) {
    // Recurrent memory keeps one state a sequence and never runs out; the fake keeps its tokens.
    cells_.push_back({});
    free_.push_back(static_cast<std::int32_t>(cells_.size()) - 1);
  }
  FERMATA_CHECK(!free_.empty(), "appending without a free cell");
  const std::int32_t index = free_.back();
  free_.pop_back();
  cells_[static_cast<std::size_t>(index)] = cell;
  cells_[static_cast<std::size_t>(index)].owners = 1;
  to.cells.push_back(index);
  to.window_low = std::max(to.window_low,
                           static_cast<std::int64_t>(to.cells.size()) - spec_.sliding_window.value);
}

std::uint64_t FakeEngine::content(const Sequence& sequence) const {
  std::uint64_t hash = model_mark(spec_);
  for (std::int32_t index : sequence.cells) {
    const Cell& cell = cells_[static_cast<std::size_t>(index)];
    hash = mix64(hash ^ (static_cast<std::uint64_t>(raw(cell.token)) << 32) ^
                 static_cast<std::uint64_t>(cell.position));
    if (!spec_.shape_matters) continue;
    hash = mix64(hash ^ (static_cast<std::uint64_t>(cell.shape) << 32) ^
                 static_cast<std::uint64_t>(cell.company));
  }
  return hash;
}

void FakeEngine::sample(const RowGroup& group, GroupResult& result) {
  auto* sampler = dynamic_cast<FakeSampler*>(group.sampler);
  FERMATA_CHECK(sampler != nullptr, "a sampler of another vocabulary");
  result.sampled = sampler->next(content(sequence(group.seat)), spec_.eos_every);
  result.sampler_failed = !result.sampled.has_value();
}

void FakeEngine::charge(std::int64_t rows, std::int64_t prompt_rows, std::int64_t cells_attended) {
  if (spec_.clock == nullptr) return;
  const CostModel& cost = spec_.cost;
  spec_.clock->advance(cost.base + cost.per_row * (rows - prompt_rows) +
                       cost.per_prompt_row.value_or(cost.per_row) * prompt_rows +
                       Micros(cells_attended * cost.per_cell_ns / 1000));
}

void FakeEngine::charge_move(std::int64_t cells) {
  if (spec_.clock == nullptr) return;
  spec_.clock->advance(Micros(cells * spec_.cost.per_moved_cell_ns / 1000));
}

Tokens FakeEngine::compute(const RowGroup& group, std::int64_t rows_before, std::int32_t company) {
  const auto rows = static_cast<std::int32_t>(group.tokens.size());
  for (std::int32_t at = 0; at < rows; ++at) {
    const bool ubatch_begins = (rows_before + at) % limits_.ubatch.value == 0;
    if ((at == 0 || ubatch_begins) && group.cancelled != nullptr && group.cancelled->load()) {
      return Tokens(at);
    }
    append(group.seat, {.token = group.tokens[static_cast<std::size_t>(at)],
                        .position = static_cast<std::int32_t>(group.first.value) + at,
                        .shape = rows,
                        .company = company});
  }
  return Tokens(rows);
}

StepOutcome FakeEngine::step(std::span<const RowGroup> groups, std::span<GroupResult> results) {
  FERMATA_CHECK(groups.size() == results.size(), "one result for each group");
  check_groups(groups);
  for (GroupResult& result : results) result = {};
  if (random_.chance(spec_.faults.no_room_percent)) return StepOutcome::no_room;
  const bool breaks = std::exchange(break_next_step_, false);
  if (breaks || random_.chance(spec_.faults.broken_percent)) return StepOutcome::broken;
  std::int64_t pooled_rows = 0;
  for (const RowGroup& group : groups) {
    const auto rows = static_cast<std::int64_t>(group.tokens.size());
    pooled_rows = geometry_.layout == Layout::pooled ? pooled_rows + rows : rows;
    if (pooled_rows > rows_free(group.seat)) return StepOutcome::no_room;
  }

  const bool apart = capabilities_.one_sequence_per_ubatch;
  const auto company = static_cast<std::int32_t>(apart ? 1 : groups.size());
  std::int64_t rows = 0, prompt_rows = 0, cells_attended = 0;
  bool interrupted = false;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const RowGroup& group = groups[g];
    const std::int64_t before = position(group.seat).value;
    results[g].computed = compute(group, apart ? 0 : rows, company);
    const std::int64_t computed = results[g].computed.value;
    rows += computed;
    if (group.tokens.size() > 1) prompt_rows += computed;
    cells_attended += computed * before + computed * (computed + 1) / 2;
    const bool whole = computed == static_cast<std::int64_t>(group.tokens.size());
    interrupted |= !whole;
    if (whole && group.sampler != nullptr) sample(group, results[g]);
  }
  charge(rows, prompt_rows, cells_attended);
  return interrupted ? StepOutcome::interrupted : StepOutcome::done;
}

Tokens FakeEngine::position(Seat seat) const {
  return Tokens(static_cast<std::int64_t>(sequence(seat).cells.size()));
}

Tokens FakeEngine::truncatable(Seat seat, Tokens want) const {
  const Tokens held = position(seat);
  want = std::min(want, held);
  if (want == held || capabilities_.truncate_anywhere) return want;
  if (spec_.kind != MemoryKind::sliding_window) return Tokens(0);
  const std::int64_t needed_from =
      std::max<std::int64_t>(0, want.value - spec_.sliding_window.value);
  return sequence(seat).window_low <= needed_from ? want : Tokens(0);
}

void FakeEngine::drop(Sequence& from, std::size_t keep) {
  while (from.cells.size() > keep) {
    const std::int32_t index = from.cells.back();
    from.cells.pop_back();
    Cell& cell = cells_[static_cast<std::size_t>(index)];
    FERMATA_CHECK(cell.owners > 0, "a cell given back twice");
    if (--cell.owners == 0) free_.push_back(index);
  }
  if (from.cells.empty()) from.window_low = 0;
}

EditOutcome FakeEngine::truncate(Seat seat, Tokens keep) {
  FERMATA_CHECK(keep >= Tokens(0) && keep <= position(seat), "keeping more than there is");
  if (truncatable(seat, keep) != keep) return EditOutcome::unsupported;
  drop(sequence(seat), static_cast<std::size_t>(keep.value));
  return EditOutcome::done;
}

EditOutcome FakeEngine::share_prefix(Seat from, Seat to, Tokens n) {
  FERMATA_CHECK(from != to, "sharing with itself");
  FERMATA_CHECK(position(to) == Tokens(0), "sharing into a seat that holds cells");
  FERMATA_CHECK(n >= Tokens(1) && n <= position(from), "sharing more than there is");
  if (!capabilities_.share_prefix) return EditOutcome::unsupported;
  const Sequence& source = sequence(from);
  Sequence& target = sequence(to);
  target.cells.assign(source.cells.begin(), source.cells.begin() + n.value);
  for (std::int32_t index : target.cells) ++cells_[static_cast<std::size_t>(index)].owners;
  return EditOutcome::done;
}

void FakeEngine::clear(Seat seat) { drop(sequence(seat), 0); }

ShiftOutcome FakeEngine::shift(Seat seat, Tokens keep, Tokens discard) {
  FERMATA_CHECK(keep >= Tokens(0) && discard > Tokens(0) && keep + discard < position(seat),
                "no such shift");
  if (!capabilities_.shift) return ShiftOutcome::unsupported;
  Sequence& of = sequence(seat);
  const auto behind = of.cells.begin() + (keep + discard).value;
  const std::vector<std::int32_t> moved(behind, of.cells.end());
  for (const std::int32_t index : moved) {
    Cell& cell = cells_[static_cast<std::size_t>(index)];
    FERMATA_CHECK(cell.owners == 1, "shifting a neighbour's cell");
    cell.position -= static_cast<std::int32_t>(discard.value);
    cell.shape += shifted_shape;
  }
  of.cells.erase(behind, of.cells.end());
  drop(of, static_cast<std::size_t>(keep.value));
  of.cells.insert(of.cells.end(), moved.begin(), moved.end());
  return ShiftOutcome::done;
}

ByteBuffer FakeEngine::bytes_of(Seat seat, Tokens begin, Tokens end) const {
  ByteBuffer bytes(static_cast<std::size_t>((end - begin).value) * sizeof(MovedCell));
  std::byte* out = bytes.data();
  for (std::int64_t i = begin.value; i < end.value; ++i, out += sizeof(MovedCell)) {
    const auto index = sequence(seat).cells[static_cast<std::size_t>(i)];
    const Cell& cell = cells_[static_cast<std::size_t>(index)];
    const MovedCell moved{model_mark(spec_), raw(cell.token), cell.position, cell.shape,
                          cell.company};
    std::memcpy(out, &moved, sizeof moved);
  }
  return bytes;
}

Result<void, MoveFault> FakeEngine::append_bytes(Seat seat, std::span<const std::byte> bytes) {
  if (random_.chance(spec_.faults.move_percent)) return Err(MoveFault::no_room);
  if (bytes.empty() || bytes.size() % sizeof(MovedCell) != 0) return Err(MoveFault::foreign);
  std::vector<MovedCell> moved(bytes.size() / sizeof(MovedCell));
  std::memcpy(moved.data(), bytes.data(), bytes.size());
  for (const MovedCell& cell : moved) {
    if (cell.model != model_mark(spec_)) return Err(MoveFault::foreign);
  }
  FERMATA_CHECK(moved.front().position == position(seat).value, "a range out of its place");
  if (static_cast<std::int64_t>(moved.size()) > rows_free(seat)) return Err(MoveFault::no_room);
  for (const MovedCell& cell : moved) {
    append(seat, {.token = TokenId{cell.token},
                  .position = cell.position,
                  .shape = cell.shape,
                  .company = cell.company});
  }
  charge_move(static_cast<std::int64_t>(moved.size()));
  return {};
}

Bytes FakeEngine::range_bytes(Tokens n) const {
  return Bytes(capabilities_.move_ranges ? n.value * std::int64_t{sizeof(MovedCell)} : 0);
}

Result<void, MoveFault> FakeEngine::export_range(Seat seat, Tokens begin, Tokens end,
                                                 ByteBuffer& into) {
  FERMATA_CHECK(Tokens(0) <= begin && begin < end && end <= position(seat), "no such range");
  if (!capabilities_.move_ranges) return Err(MoveFault::unsupported);
  if (random_.chance(spec_.faults.move_percent)) return Err(MoveFault::no_room);
  into = bytes_of(seat, begin, end);
  exported_ += end - begin;
  charge_move((end - begin).value);
  return {};
}

Result<void, MoveFault> FakeEngine::import_range(Seat seat, std::span<const std::byte> bytes) {
  if (!capabilities_.move_ranges) return Err(MoveFault::unsupported);
  return append_bytes(seat, bytes);
}

// The cells of the whole sequence, then how far back its window reaches.
Result<void, MoveFault> FakeEngine::export_sequence(Seat seat, ByteBuffer& into) {
  FERMATA_CHECK(position(seat) > Tokens(0), "a sequence of nothing");
  if (random_.chance(spec_.faults.move_percent)) return Err(MoveFault::no_room);
  into = bytes_of(seat, Tokens(0), position(seat));
  exported_ += position(seat);
  charge_move(position(seat).value);
  const std::int64_t low = sequence(seat).window_low;
  into.resize(into.size() + sizeof low);
  std::memcpy(into.data() + into.size() - sizeof low, &low, sizeof low);
  return {};
}

Result<void, MoveFault> FakeEngine::import_sequence(Seat seat, std::span<const std::byte> bytes) {
  FERMATA_CHECK(position(seat) == Tokens(0), "a sequence onto another");
  std::int64_t low = 0;
  if (bytes.size() <= sizeof low) return Err(MoveFault::foreign);
  const auto cells = bytes.first(bytes.size() - sizeof low);
  if (const auto done = append_bytes(seat, cells); !done) return done;
  std::memcpy(&low, bytes.data() + cells.size(), sizeof low);
  sequence(seat).window_low = low;
  return {};
}

Tokens FakeEngine::cells_used() const {
  return Tokens(std::count_if(cells_.begin(), cells_.end(),
                              [](const Cell& cell) { return cell.owners > 0; }));
}

std::vector<std::int32_t> FakeEngine::shape_stamps(Seat seat) const {
  std::vector<std::int32_t> out;
  for (std::int32_t index : sequence(seat).cells) {
    out.push_back(cells_[static_cast<std::size_t>(index)].shape);
  }
  return out;
}

}  // namespace fermata::engine::fake
