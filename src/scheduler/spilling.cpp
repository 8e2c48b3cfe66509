#include "scheduler/spilling.h"

#include "base/check.h"
#include "base/log.h"

#include <algorithm>
#include <utility>

namespace fermata::scheduler {

bool Spilling::put(const Request& request, const kv::Image& image, double price_seconds) {
  const bool is_in_ram = std::ranges::none_of(
      image.pieces, [](const kv::Piece& piece) { return piece.hold() == kv::Hold::passing; });
  if (is_in_ram) return true;
  FERMATA_CHECK(spill_ != nullptr, "bytes on their way to nowhere");
  // One that is larger than all that may be on the way would never come back.
  if (image.size() > pool_.vault().passing_max()) return false;
  return spill_->put(request.id, image, request.owner, price_seconds);
}

// What takes no more now is asked again in the next tick.
void Spilling::fetch(const policy::Plan& plan, const Parked& parked) {
  for (const std::size_t p : plan.fetch) (void)spill_->fetch(parked[p]->request().id);
}

void Spilling::take(const Parked& parked) {
  if (!spill_) return;
  news_.clear();
  spill_->reap(news_);
  for (kv::Spilled& spilled : news_) {
    const auto found =
        std::ranges::find_if(parked, [&](const auto& s) { return s->request().id == spilled.id; });
    FERMATA_CHECK(found != parked.end(), "bytes of who is not parked");
    take(spilled, **found, parked);
  }
  stats_.passing_bytes.set(pool_.vault().passing().value);
}

void Spilling::take(kv::Spilled& spilled, Sequence& sequence, const Parked& parked) {
  switch (spilled.what) {
    case kv::Spilled::What::out:
      sequence.bytes_are_out();
      sequence.drop_bytes();
      stats_.spilled.add();
      return;
    case kv::Spilled::What::back:
      take_back(spilled, sequence, parked);
      return;
    case kv::Spilled::What::lost:
      lose(sequence, "they are not there any more, or could not be written");
      return;
  }
}

// Others that are back too soon make room: they are out as well. Those of one request come back
// together; what does not fit beside the others never would.
void Spilling::take_back(kv::Spilled& spilled, Sequence& sequence, const Parked& parked) {
  const Tokens all{static_cast<std::int64_t>(sequence.image().tokens.size())};
  std::vector<kv::Piece> pieces = pool_.pieces_of(spilled.pieces, all);
  bool has_company = false;
  for (auto other = parked.rbegin(); other != parked.rend() && pieces.empty(); ++other) {
    const kv::Image& image = (*other)->image();
    if (image.away == Bytes(0) || image.is_away()) continue;
    if (sequence.group() != GroupId() && (*other)->group() == sequence.group()) {
      has_company = true;
      continue;
    }
    (*other)->drop_bytes();
    pieces = pool_.pieces_of(spilled.pieces, all);
  }
  if (pieces.empty() && has_company) return lose(sequence, "they do not fit beside its choices'");
  if (pieces.empty()) return;  // What is on its way out takes the room: it is fetched again.
  sequence.bytes_are_back(std::move(pieces));
  stats_.unspilled.add();
}

void Spilling::lose(Sequence& sequence, std::string_view why) {
  stats_.spills_lost.add();
  log_warn("request {} is computed again, its bytes cannot be had: {}", sequence.request().id.value,
           why);
  sequence.forget_bytes();
  spill_->forget(sequence.request().id);
}

}  // namespace fermata::scheduler
