#include "reconfigure/crate.h"

#include <algorithm>
#include <utility>

namespace fermata::reconfigure {

Crate::Crate(engine::Engine& from, const kv::Pool& pool, const std::vector<Transfer::Item>& items,
             Tokens block)
    : ranges_(from.capabilities().move_ranges) {
  for (const Transfer::Item& item : items) {
    Packed packed{.seat = item.from, .length = from.position(item.from), .pieces = {}};
    pack(from, pool, packed, block);
    packed_.push_back(std::move(packed));
  }
}

void Crate::add(Packed& packed, ByteBuffer bytes) {
  bytes_ += Bytes(static_cast<std::int64_t>(bytes.size()));
  packed.pieces.push_back(std::move(bytes));
}

void Crate::pack(engine::Engine& from, const kv::Pool& pool, Packed& packed, Tokens block) {
  if (packed.length == Tokens(0)) return;
  ByteBuffer bytes;
  if (!ranges_) {
    packed.failed = !from.export_sequence(packed.seat, bytes);
    if (!packed.failed) add(packed, std::move(bytes));
    return;
  }
  for (std::size_t i = 0; from.capabilities().share_prefix && i < packed_.size(); ++i) {
    const Tokens common = pool.ledger().shared(packed_[i].seat, packed.seat);
    if (packed_[i].failed || common <= packed.shared) continue;
    packed.like = i;
    packed.shared = common;
  }
  for (Tokens begin = packed.shared; begin < packed.length && !packed.failed;) {
    const Tokens end = std::min(begin + block, packed.length);
    bytes = ByteBuffer();
    packed.failed = !from.export_range(packed.seat, begin, end, bytes);
    if (!packed.failed) add(packed, std::move(bytes));
    begin = end;
  }
}

bool Crate::put(engine::Engine& into, Seat to, const Packed& packed) const {
  return std::ranges::all_of(packed.pieces, [&](const ByteBuffer& bytes) {
    return ranges_ ? into.import_range(to, bytes).ok() : into.import_sequence(to, bytes).ok();
  });
}

std::vector<kv::Adopted> Crate::unpack(engine::Engine& into,
                                       const std::vector<Transfer::Item>& items) {
  std::vector<kv::Adopted> out;
  std::vector<std::optional<Seat>> place(packed_.size());  // In `into`; none: not there.
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    const Packed& packed = packed_[i];
    const auto item = std::ranges::find(items, packed.seat, &Transfer::Item::from);
    if (packed.failed || item == items.end()) continue;
    kv::Adopted adopted{.from = packed.seat, .to = item->to};
    bool done = true;
    if (packed.like) {
      adopted.like = place[*packed.like];
      adopted.shared = packed.shared;
      done = adopted.like &&
             into.share_prefix(*adopted.like, item->to, packed.shared) == engine::EditOutcome::done;
    }
    done = done && put(into, item->to, packed);
    if (!done) {
      into.clear(item->to);
      continue;
    }
    place[i] = item->to;
    out.push_back(adopted);
  }
  return out;
}

}  // namespace fermata::reconfigure
