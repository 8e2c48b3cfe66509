#include "kv/disk_spill.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace fermata::kv {
namespace {

bool fits(const Image& image, store::Kind kind) {
  const Tokens tokens{static_cast<std::int64_t>(image.tokens.size())};
  if (tokens < Tokens(1) || tokens > store::page_tokens_max) return false;
  if (image.pieces.size() != store::block_count(kind, tokens)) return false;
  for (std::size_t i = 0; i < image.pieces.size(); ++i) {
    const Piece& piece = image.pieces[i];
    if (piece.tokens() != store::tokens_of_block(kind, tokens, i)) return false;
    if (piece.size() < Bytes(1) || piece.size() > store::block_bytes_max) return false;
  }
  return true;
}

}  // namespace

DiskSpill::~DiskSpill() {
  for (const auto& [id, kept] : kept_) {
    if (kept.page) options_.store->let_go(*kept.page);
  }
}

DiskSpill::Kept* DiskSpill::find(RequestId id, store::Ticket asked) {
  const auto found = kept_.find(id);
  return found != kept_.end() && found->second.asked == asked ? &found->second : nullptr;
}

bool DiskSpill::put(RequestId id, const Image& image, const Owner& owner, double price_seconds) {
  FERMATA_CHECK(!kept_.contains(id), "two images of one request");
  // Cells that stand where they were not computed are nobody else's.
  if (!fits(image, kind_) || image.unshifted < tokens_of(image.pieces)) return false;
  store::Draft draft;
  draft.owner = store::Owner{owner};
  draft.fingerprint = options_.fingerprint;
  draft.kind = kind_;
  draft.reason = store::Reason::parked;
  draft.price_seconds = price_seconds;
  draft.in_chunks = image.in_chunks;
  draft.tokens = image.tokens;
  std::vector<store::BlockBytes> blocks;
  Leaving leaving{.id = id, .image = {}};
  for (const Piece& piece : image.pieces) {
    leaving.image.pieces.push_back(piece.share());
    blocks.push_back({piece.bytes(), nullptr});
  }
  const store::Ticket ticket = next_ticket();
  if (options_.store->save(ticket, std::move(draft), std::move(blocks)) !=
      store::Submit::accepted) {
    return false;
  }
  leaving_.emplace(ticket, std::move(leaving));
  kept_.emplace(id, Kept{.asked = ticket});
  outlived_.try_emplace(id);
  return true;
}

bool DiskSpill::fetch(RequestId id) {
  const auto kept = kept_.find(id);
  FERMATA_CHECK(kept != kept_.end() && kept->second.page, "fetching what is not out");
  if (kept->second.is_coming) return true;
  const auto page = options_.store->find(*kept->second.page);
  if (!page || page->fingerprint != options_.fingerprint || page->kind != kind_) {
    news_.push_back({.id = id});
    return true;
  }
  const store::Ticket ticket = next_ticket();
  const std::size_t blocks = store::block_count(kind_, page->tokens);
  if (options_.store->load(ticket, page->id, options_.fingerprint, blocks) !=
      store::Submit::accepted) {
    return false;
  }
  kept->second.asked = ticket;
  kept->second.is_coming = true;
  coming_.emplace(ticket, id);
  return true;
}

void DiskSpill::forget(RequestId id) {
  const auto kept = kept_.find(id);
  if (kept == kept_.end()) return;
  if (kept->second.page) {
    options_.store->let_go(*kept->second.page);
    outlived_[id].push_back(*kept->second.page);
  }
  kept_.erase(kept);
  std::erase_if(news_, [id](const Spilled& spilled) { return spilled.id == id; });
}

void DiskSpill::end(RequestId id, bool is_stopping) {
  forget(id);
  if (!is_stopping) drop_outlived(id);
  outlived_.erase(id);
}

void DiskSpill::drop_outlived(RequestId id) {
  const auto found = outlived_.find(id);
  if (found == outlived_.end()) return;
  for (const store::PageId& page : found->second) drop(page);
  found->second.clear();
}

// Held from now on: it may be gone already, and then it is lost.
void DiskSpill::written(const Leaving& leaving, const store::Completion& completion) {
  Kept* const kept = find(leaving.id, completion.ticket);
  if (completion.outcome == store::Outcome::done) drop_outlived(leaving.id);
  if (kept == nullptr) {  // Its request has ended, or runs again.
    if (completion.outcome != store::Outcome::done) return;
    const auto known = outlived_.find(leaving.id);
    if (known == outlived_.end()) return drop(completion.page.id);
    known->second.push_back(completion.page.id);
    return;
  }
  const bool is_there =
      completion.outcome == store::Outcome::done && options_.store->hold(completion.page.id);
  if (is_there) {
    kept->page = completion.page.id;
  } else {
    kept_.erase(leaving.id);
  }
  news_.push_back({.id = leaving.id, .what = is_there ? Spilled::What::out : Spilled::What::lost});
}

bool DiskSpill::take(store::Completion& completion) {
  if (const auto saved = leaving_.find(completion.ticket); saved != leaving_.end()) {
    written(saved->second, completion);
    leaving_.erase(saved);
    return true;
  }
  const auto loaded = coming_.find(completion.ticket);
  if (loaded == coming_.end()) return completion.operation == store::Operation::drop;
  const RequestId id = loaded->second;
  coming_.erase(loaded);
  Kept* const kept = find(id, completion.ticket);
  if (kept == nullptr) return true;
  kept->is_coming = false;
  Spilled spilled{.id = id};
  if (completion.outcome == store::Outcome::done) {
    spilled.what = Spilled::What::back;
    spilled.pieces = std::move(completion.blocks);
  }
  news_.push_back(std::move(spilled));
  return true;
}

// At once: so it is gone before the turn's end is written, which takes the place of the page before
// it.
void DiskSpill::drop(const store::PageId& page) {
  dropping_.push_back(page);
  hand_in_drops();
}

// What the store takes no more now is handed in in the next tick.
void DiskSpill::hand_in_drops() {
  while (!dropping_.empty() &&
         options_.store->drop(next_ticket(), dropping_.back()) == store::Submit::accepted) {
    dropping_.pop_back();
  }
}

void DiskSpill::reap(std::vector<Spilled>& out) {
  hand_in_drops();
  std::ranges::move(news_, std::back_inserter(out));
  news_.clear();
}

void DiskSpill::change_fingerprint(const store::Fingerprint& now, store::Kind kind) {
  options_.fingerprint = now;
  kind_ = kind;
}

}  // namespace fermata::kv
