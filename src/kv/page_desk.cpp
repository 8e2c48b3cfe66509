#include "kv/page_desk.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace fermata::kv {
namespace {

constexpr std::string_view nameless = "id.";
// What an imported page says of its price counts up to this, so that it can be evicted.
constexpr double price_max_s_per_token = 1;

Tokens length(std::span<const TokenId> tokens) {
  return Tokens(static_cast<std::int64_t>(tokens.size()));
}

PageOutcome outcome_of(store::Outcome outcome) {
  switch (outcome) {
    case store::Outcome::done:
      return PageOutcome::done;
    case store::Outcome::missing:
      return PageOutcome::missing;
    case store::Outcome::taken:
      return PageOutcome::taken;
    case store::Outcome::full:
    case store::Outcome::refused_rate:
      return PageOutcome::full;
    case store::Outcome::damaged:
    case store::Outcome::foreign:
      return PageOutcome::damaged;
    case store::Outcome::busy:
      return PageOutcome::busy;
    case store::Outcome::stopping:
      return PageOutcome::stopping;
    case store::Outcome::failed:
      break;
  }
  return PageOutcome::failed;
}

void refuse(const PageCommand& command, PageOutcome outcome) {
  command.reply->give({.outcome = outcome});
}

}  // namespace

std::optional<store::Page> find_page(const store::Store& store, const Owner& owner,
                                     const std::string& name) {
  auto page = store.find(store::Owner{owner}, name);
  store::PageId id;
  if (page || !name.starts_with(nameless) ||
      !store::from_hex(std::string_view(name).substr(nameless.size()), id.bytes)) {
    return page;
  }
  page = store.find(id);
  return page && page->owner == store::Owner{owner} ? page : std::nullopt;
}

PageDesk::PageDesk(const ArchiveOptions& options, Pool& pool, store::Kind kind,
                   std::shared_ptr<const engine::RangeCheck> check)
    : options_(options), pool_(pool), kind_(kind) {
  gate_.change(options.fingerprint, kind, std::move(check));
}

void PageDesk::change_fingerprint(const store::Fingerprint& fingerprint, store::Kind kind,
                                  std::shared_ptr<const engine::RangeCheck> check) {
  options_.fingerprint = fingerprint;
  kind_ = kind;
  gate_.change(fingerprint, kind, std::move(check));
}

void PageDesk::carry_out(PageCommand command) {
  if (command.action == PageAction::list) return hand_in(std::move(command), {});
  const auto page = find_page(*options_.store, command.owner, command.name);
  if (!page) return refuse(command, PageOutcome::missing);
  if (command.action == PageAction::get || command.action == PageAction::spill) {
    if (command.action == PageAction::spill) forget(*page, false);
    return answer(command, std::span(&*page, 1));
  }
  if (command.action == PageAction::erase) forget(*page, true);
  hand_in(std::move(command), *page);
}

store::Submit PageDesk::hand_in(Ticket ticket, const PageCommand& command,
                                const store::Page& page) {
  store::Store& store = *options_.store;
  switch (command.action) {
    case PageAction::pin:
    case PageAction::unpin:
      return store.pin(ticket, page.id, command.action == PageAction::pin);
    case PageAction::rename:
      return store.rename(ticket, page.id, command.to);
    case PageAction::fork:
      return store.fork(ticket, page.id, command.to);
    case PageAction::erase:
      return store.erase(ticket, page.id);
    case PageAction::export_part:
      return store.read_part(ticket, page.id, command.part);
    case PageAction::list:
    case PageAction::get:
    case PageAction::spill:
    case PageAction::import:
      break;
  }
  return store.list(ticket, store::Owner{command.owner}, command.name);
}

void PageDesk::hand_in(PageCommand command, const store::Page& page) {
  const Ticket ticket(next_ticket_++);
  const store::Submit handed_in = hand_in(ticket, command, page);
  wait_for(handed_in, ticket, std::move(command));
}

void PageDesk::wait_for(store::Submit handed_in, Ticket ticket, PageCommand command) {
  switch (handed_in) {
    case store::Submit::accepted:
      waiting_.emplace(ticket, std::move(command));
      return;
    case store::Submit::busy:
      return refuse(command, PageOutcome::busy);
    case store::Submit::stopping:
      return refuse(command, PageOutcome::stopping);
  }
}

// A page is replaced only by its own extension.
void PageDesk::carry_out(PageImport import) {
  PageCommand& command = import.command;
  store::Parcel& parcel = import.parcel;
  store::Draft draft;
  draft.owner = store::Owner{command.owner};
  draft.fingerprint = parcel.page.fingerprint;
  draft.kind = parcel.page.kind;
  draft.reason = store::Reason::client_request;
  draft.from_outside = true;
  draft.name = command.name;
  draft.price_seconds = std::min(parcel.page.price_seconds,
                                 price_max_s_per_token * static_cast<double>(parcel.tokens.size()));
  draft.in_chunks = parcel.page.in_chunks;
  if (const auto there = options_.store->find(draft.owner, draft.name)) {
    const bool goes_on = there->fingerprint == draft.fingerprint && there->kind == draft.kind &&
                         store::is_prefix(*there, parcel.tokens);
    if (!goes_on) return refuse(command, PageOutcome::taken);
    draft.pinned = there->pinned;
  }
  draft.tokens = std::move(parcel.tokens);
  std::vector<store::BlockBytes> blocks;
  for (const auto bytes : parcel.blocks) blocks.push_back({bytes, import.body});
  const Ticket ticket(next_ticket_++);
  const store::Submit handed_in = options_.store->save(ticket, std::move(draft), std::move(blocks));
  wait_for(handed_in, ticket, std::move(command));
}

// A turn that was being written took the place of the page meanwhile: it is what was meant.
bool PageDesk::erases_again(PageCommand& command, store::Outcome outcome) {
  if (command.action != PageAction::erase || outcome != store::Outcome::missing) return false;
  const auto page = find_page(*options_.store, command.owner, command.name);
  if (!page) return false;
  forget(*page, true);
  hand_in(std::move(command), *page);
  return true;
}

void PageDesk::take(store::Completion completion) {
  const auto found = waiting_.find(completion.ticket);
  if (found == waiting_.end()) return;
  PageCommand command = std::move(found->second);
  waiting_.erase(found);
  if (erases_again(command, completion.outcome)) return;
  if (completion.outcome != store::Outcome::done) {
    return refuse(command, outcome_of(completion.outcome));
  }
  if (command.action == PageAction::list) return answer(command, completion.pages);
  if (command.action == PageAction::export_part) return give_part(command, std::move(completion));
  answer(command, std::span(&completion.page, 1));
}

void PageDesk::give_part(const PageCommand& command, store::Completion completion) {
  store::Store& store = *options_.store;
  const store::Page& page = completion.page;
  if (!store.hold(page.id)) return refuse(command, PageOutcome::missing);
  PageAnswer out;
  out.id = std::string(nameless) + to_hex(page.id);
  out.hold = std::shared_ptr<const void>(nullptr,
                                         [&store, id = page.id](const void*) { store.let_go(id); });
  out.is_last = command.part == store::block_count(page.kind, page.tokens);
  out.part = std::move(completion.blocks.front());
  out.bytes = Bytes(static_cast<std::int64_t>(out.part.size())) + page.bytes;
  command.reply->give(std::move(out));
}

void PageDesk::stop() {
  for (const auto& [ticket, command] : waiting_) refuse(command, PageOutcome::stopping);
  waiting_.clear();
}

// Copies of it in the pool and in RAM; there may be a turn after it that is not stored yet.
void PageDesk::forget(const store::Page& page, bool with_next_turn) {
  if (page.fingerprint != options_.fingerprint) return;
  pool_.forget([&](std::span<const TokenId> tokens, const Owner& owner, std::string_view name) {
    if (store::Owner{owner} != page.owner) return false;
    if (with_next_turn && !page.name.empty() && name == page.name) return true;
    return length(tokens) == page.tokens && store::is_prefix(page, tokens);
  });
}

// Takes some microseconds for each entry of the shelf that is as long as one of the pages.
PageDesk::BytesByKey PageDesk::ram_of(std::span<const store::Page> pages) const {
  std::unordered_set<std::int64_t> lengths;
  for (const store::Page& page : pages) lengths.insert(page.tokens.value);
  BytesByKey out;
  pool_.shelf().for_each([&](const Image& entry) {
    if (!lengths.contains(length(entry.tokens).value)) return;
    const store::BlockKey root =
        store::root_key(store::Owner{entry.owner}, options_.fingerprint, kind_);
    out[store::chain_of(root, entry.tokens).back()] += entry.size();
  });
  return out;
}

PageInfo PageDesk::info(const store::Page& page, const BytesByKey& ram) const {
  PageInfo out;
  out.is_named = !page.name.empty();
  out.name = out.is_named ? page.name : std::string(nameless) + to_hex(page.id);
  out.tokens = page.tokens;
  out.disk = page.bytes;
  if (const auto held = ram.find(page.end); held != ram.end()) out.ram = held->second;
  out.is_pinned = page.pinned;
  out.reason = name_of(page.reason);
  out.kind = name_of(page.kind);
  out.created = page.created;
  out.last_used = page.last_used;
  out.price_seconds = page.price_seconds;
  out.fingerprint = store::to_hex(page.fingerprint);
  out.owner = to_hex(page.owner);
  return out;
}

void PageDesk::answer(const PageCommand& command, std::span<const store::Page> pages) {
  PageAnswer out;
  out.total = pages.size();
  if (command.action == PageAction::list)
    pages = pages.first(std::min(pages.size(), command.limit));
  const BytesByKey ram = ram_of(pages);
  for (const store::Page& page : pages) out.pages.push_back(info(page, ram));
  command.reply->give(std::move(out));
}

}  // namespace fermata::kv
