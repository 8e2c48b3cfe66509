#include "reconfigure/transfer.h"

#include <algorithm>
#include <utility>

namespace fermata::reconfigure {

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
  if (copy.copied > Tokens(0) || !to_.capabilities().share_prefix) return;
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

bool Transfer::advance(Micros budget) {
  refresh();
  if (!from_.capabilities().move_ranges) return true;
  const Micros begun = clock_.now();
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    Copy& copy = copies_[i];
    share(i);
    while (!copy.failed && copy.copied + block_ <= from_.position(copy.item.from)) {
      if (!copy_block(copy, copy.copied + block_)) fail(i);
      if (clock_.now() - begun >= budget) return false;
    }
  }
  return true;
}

void Transfer::copy_whole(Copy& copy) {
  const Micros begun = clock_.now();
  copy.failed = !from_.export_sequence(copy.item.from, buffer_);
  const Micros half = clock_.now();
  copy.failed = copy.failed || !to_.import_sequence(copy.item.to, buffer_);
  out_ += half - begun;
  in_ += clock_.now() - half;
  moved_ += Bytes(static_cast<std::int64_t>(buffer_.size()));
}

std::vector<kv::Adopted> Transfer::finish() {
  refresh();
  std::vector<kv::Adopted> out;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    Copy& copy = copies_[i];
    const Tokens length = from_.position(copy.item.from);
    if (copy.failed) continue;
    if (from_.capabilities().move_ranges) {
      share(i);
      while (!copy.failed && copy.copied < length) {
        if (!copy_block(copy, std::min(copy.copied + block_, length))) fail(i);
      }
    } else if (length > Tokens(0)) {
      copy_whole(copy);
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
