#include "reconfigure/transfer.h"

#include <algorithm>
#include <utility>

namespace fermata::reconfigure {
namespace {

// Of a sequence that grows: fewer are left for the end.
constexpr Tokens worth_copying{16};

}  // namespace

Transfer::Transfer(engine::Engine& from, engine::Engine& to, const kv::Pool& pool,
                   const std::vector<Item>& items, const Clock& clock, Tokens block)
    : from_(from), to_(to), pool_(pool), clock_(clock), block_(block) {
  for (const Item& item : items) {
    copies_.push_back({.item = item, .version = pool.version(item.from)});
  }
}

void Transfer::start_over(std::size_t index) {
  Copy& copy = copies_[index];
  to_.clear(copy.item.to);
  copy.copied = copy.shared = Tokens(0);
  copy.like.reset();
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].like == index) start_over(i);
  }
}

void Transfer::fail(std::size_t index) {
  start_over(index);
  copies_[index].failed = true;
}

// Seats that were cut or taken by others since.
void Transfer::refresh() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const std::uint64_t version = pool_.version(copies_[i].item.from);
    if (std::exchange(copies_[i].version, version) != version) start_over(i);
  }
}

// Begins with the cells of one that was copied before, as it does in the old engine.
void Transfer::share(std::size_t index) {
  Copy& copy = copies_[index];
  if (copy.failed || copy.copied > Tokens(0) || !to_.capabilities().share_prefix) return;
  for (std::size_t i = 0; i < index; ++i) {
    const Tokens common =
        std::min(pool_.ledger().shared(copies_[i].item.from, copy.item.from), copies_[i].copied);
    if (copies_[i].failed || common <= copy.shared) continue;
    copy.like = i;
    copy.shared = common;
  }
  if (!copy.like) return;
  const Seat source = copies_[*copy.like].item.to;
  if (to_.share_prefix(source, copy.item.to, copy.shared) == engine::EditOutcome::unsupported) {
    copy.like.reset();
    copy.shared = Tokens(0);
  }
  copy.copied = copy.shared;
}

bool Transfer::copy_block(Copy& copy, Tokens end) {
  const Micros begun = clock_.now();
  if (!from_.export_range(copy.item.from, copy.copied, end, buffer_)) return false;
  const Micros half = clock_.now();
  if (!to_.import_range(copy.item.to, buffer_)) return false;
  out_ += half - begun;
  in_ += clock_.now() - half;
  moved_ += Bytes(static_cast<std::int64_t>(buffer_.size()));
  copy.copied = end;
  return true;
}

// What one call copies of a seat; 0: nothing now.
Tokens Transfer::next_piece(const Copy& copy) const {
  const Tokens left = from_.position(copy.item.from) - copy.copied;
  const bool grows = pool_.use(copy.item.from) == kv::SeatUse::busy;
  if (copy.failed || left < (grows ? worth_copying : Tokens(1))) return Tokens(0);
  if (!from_.capabilities().move_ranges) return grows ? Tokens(0) : left;
  return std::min(left, block_);
}

bool Transfer::advance(Micros budget) {
  refresh();
  const Micros begun = clock_.now();
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    Copy& copy = copies_[i];
    if (from_.capabilities().move_ranges) share(i);
    for (Tokens piece = next_piece(copy); piece > Tokens(0); piece = next_piece(copy)) {
      if (!copy_piece(copy, copy.copied + piece)) fail(i);
      if (clock_.now() - begun >= budget) return false;
    }
  }
  return true;
}

bool Transfer::copy_whole(Copy& copy, Tokens length) {
  const Micros begun = clock_.now();
  if (!from_.export_sequence(copy.item.from, buffer_)) return false;
  const Micros half = clock_.now();
  if (!to_.import_sequence(copy.item.to, buffer_)) return false;
  out_ += half - begun;
  in_ += clock_.now() - half;
  moved_ += Bytes(static_cast<std::int64_t>(buffer_.size()));
  copy.copied = length;
  return true;
}

bool Transfer::copy_piece(Copy& copy, Tokens end) {
  return from_.capabilities().move_ranges ? copy_block(copy, end) : copy_whole(copy, end);
}

std::vector<kv::Adopted> Transfer::finish() {
  refresh();
  std::vector<kv::Adopted> out;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    Copy& copy = copies_[i];
    const Tokens length = from_.position(copy.item.from);
    if (copy.failed) continue;
    const bool ranges = from_.capabilities().move_ranges;
    if (ranges) share(i);
    while (!copy.failed && copy.copied < length) {
      const Tokens end = ranges ? std::min(copy.copied + block_, length) : length;
      if (!copy_piece(copy, end)) fail(i);
    }
    if (copy.failed) continue;
    kv::Adopted adopted{.from = copy.item.from, .to = copy.item.to};
    if (copy.like) adopted.like = copies_[*copy.like].item.to;
    adopted.shared = copy.shared;
    out.push_back(adopted);
  }
  // A later failure may have started over those that began alike: what is not whole is left out.
  std::erase_if(out, [this](const kv::Adopted& adopted) {
    return to_.position(adopted.to) != from_.position(adopted.from);
  });
  return out;
}

}  // namespace fermata::reconfigure
