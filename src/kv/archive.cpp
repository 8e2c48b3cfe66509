#include "kv/archive.h"

#include <algorithm>
#include <span>
#include <utility>

namespace fermata::kv {

bool Archive::fetch(const Request& request, Tokens at_hand) {
  if (!is_on() || request.prompt.size() < 2) return false;
  const std::span<const TokenId> prompt(request.prompt);
  const store::Owner owner{request.owner};
  const auto match =
      options_.store->find(owner, options_.fingerprint, kind_, prompt.first(prompt.size() - 1));
  if (!match || match->tokens < at_hand + worth_loading) return false;
  const Ticket ticket(next_ticket_++);
  if (options_.store->load(ticket, match->page, options_.fingerprint, match->blocks) !=
      store::Submit::accepted) {
    return false;
  }
  loading_.emplace(ticket, request.id);
  return true;
}

bool Archive::save(Seat seat, double price_seconds, SaveAt at) {
  if (!is_on()) return true;
  if (at == SaveAt::turn_end && (is_full_ || is_saving_beginning_of(seat))) return false;
  Image image = pool_.copy_all(seat);
  if (image.tokens.empty()) return true;
  store::Draft draft;
  draft.owner = store::Owner{image.owner};
  draft.fingerprint = options_.fingerprint;
  draft.kind = kind_;
  draft.reason = at == SaveAt::shutdown ? store::Reason::shutdown : store::Reason::idle;
  draft.price_seconds = price_seconds;
  draft.in_chunks = image.in_chunks;
  draft.tokens = image.tokens;
  // An unnamed page that this one goes on from is worth nothing more.
  const auto before = options_.store->find(draft.owner, draft.fingerprint, kind_, draft.tokens);
  if (before && kind_ == store::Kind::blocks) {
    const auto page = options_.store->find(before->page);
    const bool is_beginning = page && page->tokens == before->tokens;
    const Tokens all{static_cast<std::int64_t>(draft.tokens.size())};
    if (is_beginning && page->tokens == all) return true;  // It is stored.
    if (is_beginning && page->name.empty() && !page->pinned) draft.replaces = page->id;
  }
  const Ticket ticket(next_ticket_++);
  const store::Submit handed = hand_in(ticket, image, std::move(draft));
  if (handed == store::Submit::accepted) saving_.emplace(ticket, std::move(image));
  is_full_ = handed == store::Submit::busy;
  return !is_full_;
}

// What replaces a page has to know it.
bool Archive::is_saving_beginning_of(Seat seat) const {
  return std::any_of(saving_.begin(), saving_.end(), [&](const auto& entry) {
    const Image& other = entry.second;
    const Tokens all{static_cast<std::int64_t>(other.tokens.size())};
    return other.owner == pool_.owner(seat) &&
           common_prefix(other.tokens, pool_.tokens(seat)) == all;
  });
}

store::Submit Archive::hand_in(Ticket ticket, const Image& image, store::Draft draft) {
  std::vector<store::BlockBytes> blocks;
  for (const Piece& piece : image.pieces) blocks.push_back({piece.bytes(), nullptr});
  return options_.store->save(ticket, std::move(draft), std::move(blocks));
}

bool Archive::shelve(store::Completion& completion) {
  if (completion.outcome != store::Outcome::done) return false;
  return pool_.shelve(completion.tokens, std::move(completion.blocks), completion.page.in_chunks,
                      completion.page.owner.bytes);
}

void Archive::change_fingerprint(const store::Fingerprint& fingerprint, bool snapshots) {
  options_.fingerprint = fingerprint;
  kind_ = kind_of(snapshots);
  for (const auto& [ticket, id] : loading_) given_up_.push_back({.id = id});
  loading_.clear();
}

void Archive::reap(std::vector<Arrival>& arrived) {
  if (!is_on()) return;
  arrived.insert(arrived.end(), given_up_.begin(), given_up_.end());
  given_up_.clear();
  completions_.clear();
  options_.store->reap(completions_);
  if (!completions_.empty()) is_full_ = false;
  for (store::Completion& completion : completions_) {
    saving_.erase(completion.ticket);
    const auto loaded = loading_.find(completion.ticket);
    if (loaded == loading_.end()) continue;
    arrived.push_back({loaded->second, shelve(completion)});
    loading_.erase(loaded);
  }
}

}  // namespace fermata::kv
