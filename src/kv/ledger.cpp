#include "kv/ledger.h"

#include "base/check.h"

#include <algorithm>

namespace fermata::kv {

Ledger::Ledger(std::int32_t seats, bool cells_per_token)
    : cells_per_token_(cells_per_token), sequences_(static_cast<std::size_t>(seats)) {
  FERMATA_CHECK(seats >= 1 && seats <= n_parallel_max, "seats outside the library's limit");
}

std::size_t Ledger::index(Seat seat) const {
  FERMATA_CHECK(seat.value >= 0 && static_cast<std::size_t>(seat.value) < sequences_.size(),
                "a seat that does not exist");
  return static_cast<std::size_t>(seat.value);
}

Tokens Ledger::length(Seat seat) const { return sequences_[index(seat)].length; }

Tokens Ledger::exclusive(Seat seat) const {
  Tokens out{0};
  for (std::size_t s : sequences_[index(seat)].segments) {
    if (segments_[s].owners.count() == 1) out += segments_[s].length;
  }
  return out;
}

Tokens Ledger::exclusive(const SeatSet& seats) const {
  Tokens out{0};
  for (const Segment& segment : segments_) {
    if (segment.owners.any() && (segment.owners & ~seats).none()) out += segment.length;
  }
  return out;
}

Tokens Ledger::shared(Seat a, Seat b) const {
  Tokens out{0};
  const auto& of_a = sequences_[index(a)].segments;
  const auto& of_b = sequences_[index(b)].segments;
  for (std::size_t i = 0; i < of_a.size() && i < of_b.size() && of_a[i] == of_b[i]; ++i) {
    out += segments_[of_a[i]].length;
  }
  return out;
}

Tokens Ledger::shared(Seat seat) const {
  Tokens out{0};
  for (const std::size_t s : sequences_[index(seat)].segments) {
    if (segments_[s].owners.count() == 1) break;
    out += segments_[s].length;
  }
  return out;
}

void Ledger::shift(Seat seat, Tokens keep, Tokens discard) {
  const Tokens behind = length(seat) - keep - discard;
  FERMATA_CHECK(keep >= Tokens(0) && discard >= Tokens(0) && behind >= Tokens(0), "no such shift");
  FERMATA_CHECK(shared(seat) <= keep + discard, "shifting a neighbour's cells");
  truncate(seat, keep);
  append(seat, behind);
}

Tokens Ledger::used_by(const SeatSet& seats) const {
  Tokens out{0};
  for (const Segment& segment : segments_) {
    if ((segment.owners & seats).any()) out += segment.length;
  }
  return out;
}

std::size_t Ledger::new_segment(Tokens length, const SeatSet& owners) {
  if (free_segments_.empty()) {
    segments_.push_back({length, owners});
    return segments_.size() - 1;
  }
  const std::size_t out = free_segments_.back();
  free_segments_.pop_back();
  segments_[out] = {length, owners};
  return out;
}

void Ledger::append(Seat seat, Tokens n) {
  FERMATA_CHECK(n >= Tokens(0), "appending less than nothing");
  const std::size_t at = index(seat);
  Sequence& sequence = sequences_[at];
  sequence.length += n;
  if (!cells_per_token_ || n == Tokens(0)) return;
  used_ += n;
  if (!sequence.segments.empty() && segments_[sequence.segments.back()].owners.count() == 1) {
    segments_[sequence.segments.back()].length += n;
    return;
  }
  sequence.segments.push_back(new_segment(n, SeatSet{}.set(at)));
}

// Cuts a segment in two for all its owners; the second part follows the first in each.
void Ledger::split(std::size_t segment, Tokens at) {
  FERMATA_CHECK(Tokens(0) < at && at < segments_[segment].length, "a cut outside the segment");
  const SeatSet owners = segments_[segment].owners;
  const std::size_t second = new_segment(segments_[segment].length - at, owners);
  segments_[segment].length = at;
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    if (!owners.test(s)) continue;
    auto& list = sequences_[s].segments;
    const auto first = std::find(list.begin(), list.end(), segment);
    FERMATA_CHECK(first != list.end(), "an owner does not list its segment");
    list.insert(first + 1, second);
  }
}

void Ledger::disown(Sequence& sequence, std::size_t seat) {
  const std::size_t last = sequence.segments.back();
  sequence.segments.pop_back();
  segments_[last].owners.reset(seat);
  if (segments_[last].owners.any()) return;
  used_ -= segments_[last].length;
  free_segments_.push_back(last);
  segments_[last].length = Tokens(0);
}

void Ledger::truncate(Seat seat, Tokens keep) {
  const std::size_t at = index(seat);
  Sequence& sequence = sequences_[at];
  FERMATA_CHECK(Tokens(0) <= keep && keep <= sequence.length, "keeping more than there is");
  Tokens held = sequence.length;
  sequence.length = keep;
  if (!cells_per_token_) return;
  while (held > keep) {
    const std::size_t last = sequence.segments.back();
    const Tokens begin = held - segments_[last].length;
    if (begin < keep) split(last, keep - begin);
    held = std::max(begin, keep);
    disown(sequence, at);
  }
}

void Ledger::share(Seat from, Seat to, Tokens n) {
  const std::size_t source = index(from), target = index(to);
  FERMATA_CHECK(source != target, "sharing with itself");
  FERMATA_CHECK(sequences_[target].length == Tokens(0), "sharing into a seat that holds cells");
  FERMATA_CHECK(Tokens(1) <= n && n <= sequences_[source].length, "sharing more than there is");
  sequences_[target].length = n;
  if (!cells_per_token_) return;
  Tokens covered{0};
  for (std::size_t i = 0; covered < n; ++i) {
    const std::size_t segment = sequences_[source].segments[i];
    if (covered + segments_[segment].length > n) split(segment, n - covered);
    covered += segments_[segment].length;
    segments_[segment].owners.set(target);
    sequences_[target].segments.push_back(segment);
  }
}

}  // namespace fermata::kv
