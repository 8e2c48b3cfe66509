#include "kv/archive.h"

#include <algorithm>
#include <span>
#include <utility>

namespace fermata::kv {
namespace {

Tokens length(std::span<const TokenId> tokens) {
  return Tokens(static_cast<std::int64_t>(tokens.size()));
}

}  // namespace

bool Archive::fetch(const Request& request, Tokens at_hand) {
  if (!is_on() || request.prompt.size() < 2) return false;
  const std::span<const TokenId> prompt(request.prompt);
  const store::Owner owner{request.owner};
  const auto match =
      options_.store->find(owner, options_.fingerprint, kind_, prompt.first(prompt.size() - 1));
  const Tokens worth = request.conversation.empty() ? worth_loading : Tokens(1);
  if (!match || match->tokens < at_hand + worth) return false;
  const Ticket ticket(next_ticket_++);
  if (options_.store->load(ticket, match->page, options_.fingerprint, match->blocks,
                           pool_.spare_buffers(match->tokens)) != store::Submit::accepted) {
    return false;
  }
  loading_.emplace(ticket, request.id);
  return true;
}

bool Archive::save(Seat seat, double price_seconds, SaveAt at) {
  if (!is_on()) return true;
  if (at == SaveAt::turn_end && is_full_) return false;
  Image image = pool_.copy_all(seat);
  if (image.tokens.empty()) return true;
  const bool is_end = at == SaveAt::shutdown;
  store::Draft draft =
      draft_of(image, price_seconds, is_end ? store::Reason::shutdown : store::Reason::idle);
  if (is_stored(draft, pool_.conversation(seat))) return true;
  const Ticket ticket(next_ticket_++);
  is_full_ = hand_in(ticket, std::move(image), std::move(draft), false) == store::Submit::busy;
  return !is_full_;
}

Archive::SaveAs Archive::save_as(const std::string& name, Image image, double price_seconds,
                                 store::Ticket& ticket) {
  store::Draft draft = draft_of(image, price_seconds, store::Reason::client_request);
  const bool is_there = is_stored(draft, name);
  if (draft.name.empty()) return SaveAs::taken;  // Though it may be there without one.
  if (is_there) return SaveAs::stored;
  ticket = Ticket(next_ticket_++);
  switch (hand_in(ticket, std::move(image), std::move(draft), true)) {
    case store::Submit::accepted:
      return SaveAs::accepted;
    case store::Submit::busy:
      return SaveAs::busy;
    case store::Submit::stopping:
      break;
  }
  return SaveAs::stopping;
}

store::Draft Archive::draft_of(const Image& image, double price_seconds,
                               store::Reason reason) const {
  store::Draft draft;
  draft.owner = store::Owner{image.owner};
  draft.fingerprint = options_.fingerprint;
  draft.kind = kind_;
  draft.reason = reason;
  draft.price_seconds = price_seconds;
  draft.in_chunks = image.in_chunks;
  draft.tokens = image.tokens;
  return draft;
}

// What will be stored under a name last of what is being written.
const Archive::Saving* Archive::last_saving(const store::Draft& draft,
                                            const std::string& name) const {
  const Saving* found = nullptr;
  Ticket last{0};
  for (const auto& [ticket, saving] : saving_) {
    if (saving.name != name || store::Owner{saving.image.owner} != draft.owner) continue;
    if (ticket.value < last.value) continue;
    last = ticket;
    found = &saving;
  }
  return found;
}

// The page whose name the draft may have, if there is one. Not free: it is another conversation.
std::optional<store::Page> Archive::page_to_replace(const store::Draft& draft,
                                                    const std::string& name, bool& is_free) const {
  const auto page = options_.store->find(draft.owner, name);
  if (const Saving* saving = last_saving(draft, name)) {
    is_free = common_prefix(saving->image.tokens, draft.tokens) == length(saving->image.tokens);
  } else {
    is_free = !page || (page->fingerprint == draft.fingerprint && page->kind == draft.kind &&
                        store::is_prefix(*page, draft.tokens));
  }
  return is_free ? page : std::nullopt;
}

// Settles under which name it is stored and what it takes the place of.
bool Archive::is_stored(store::Draft& draft, const std::string& conversation) const {
  bool is_free = false;
  if (!conversation.empty()) {
    const auto page = page_to_replace(draft, conversation, is_free);
    if (is_free) draft.name = conversation;
    if (page && page->tokens == length(draft.tokens)) return true;
    if (page) draft.pinned = page->pinned;
  }
  if (kind_ != store::Kind::blocks) return false;
  draft.replaces_beginning = true;
  if (!draft.name.empty()) return false;
  const auto same = options_.store->find(draft.owner, draft.fingerprint, kind_, draft.tokens);
  const auto page = same ? options_.store->find(same->page) : std::nullopt;
  return page && page->tokens == length(draft.tokens) && page->reason != store::Reason::parked;
}

store::Submit Archive::hand_in(Ticket ticket, Image image, store::Draft draft, bool is_asked) {
  std::vector<store::BlockBytes> blocks;
  for (const Piece& piece : image.pieces) blocks.push_back({piece.bytes(), nullptr});
  Saving saving{std::move(image), draft.name, is_asked};
  const store::Submit out = options_.store->save(ticket, std::move(draft), std::move(blocks));
  if (out == store::Submit::accepted) saving_.emplace(ticket, std::move(saving));
  return out;
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

void Archive::reap(std::vector<Arrival>& arrived, std::vector<store::Completion>& others) {
  if (!is_on()) return;
  arrived.insert(arrived.end(), given_up_.begin(), given_up_.end());
  given_up_.clear();
  completions_.clear();
  options_.store->reap(completions_);
  if (!completions_.empty()) is_full_ = false;
  for (store::Completion& completion : completions_) {
    if (const auto saved = saving_.find(completion.ticket); saved != saving_.end()) {
      if (saved->second.is_asked) others.push_back(std::move(completion));
      saving_.erase(saved);
      continue;
    }
    const auto loaded = loading_.find(completion.ticket);
    if (loaded == loading_.end()) {
      others.push_back(std::move(completion));
      continue;
    }
    arrived.push_back({loaded->second, shelve(completion)});
    loading_.erase(loaded);
  }
}

}  // namespace fermata::kv
