#include "kv/slot_desk.h"

#include "kv/page_desk.h"
#include "kv/slot_file.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

namespace fermata::kv {
namespace {

// The page desk counts from 1 << 63.
constexpr std::uint64_t first_ticket = std::uint64_t{1} << 62;
// Beside cells and tokens.
constexpr Bytes file_overhead_max{std::int64_t{1} << 20};

Tokens length(std::span<const TokenId> tokens) {
  return Tokens(static_cast<std::int64_t>(tokens.size()));
}

SlotOutcome outcome_of(engine::MoveFault fault) {
  switch (fault) {
    case engine::MoveFault::unsupported:
      return SlotOutcome::unsupported;
    case engine::MoveFault::no_room:
      return SlotOutcome::no_room;
    case engine::MoveFault::foreign:
      break;
  }
  return SlotOutcome::bad_file;
}

SlotOutcome outcome_of(store::Outcome outcome) {
  switch (outcome) {
    case store::Outcome::done:
      return SlotOutcome::done;
    case store::Outcome::missing:
    case store::Outcome::damaged:
      return SlotOutcome::missing;
    case store::Outcome::foreign:
      return SlotOutcome::other_model;
    case store::Outcome::full:
    case store::Outcome::refused_rate:
      return SlotOutcome::full;
    case store::Outcome::busy:
      return SlotOutcome::busy;
    case store::Outcome::stopping:
      return SlotOutcome::stopping;
    case store::Outcome::taken:
      return SlotOutcome::taken;
    case store::Outcome::failed:
      break;
  }
  return SlotOutcome::failed;
}

bool needs_engine(SlotAction action) {
  return action == SlotAction::restore || action == SlotAction::page_in;
}

}  // namespace

void SlotDesk::give(const SlotCommand& command, SlotAnswer answer) const {
  answer.took = clock_.now() - command.asked;
  command.reply->give(answer);
}

void SlotDesk::refuse(const SlotCommand& command, SlotOutcome outcome) const {
  give(command, {.outcome = outcome});
}

bool SlotDesk::holds(const SlotCommand& command) const {
  return !pool_.tokens(command.seat).empty() && pool_.owner(command.seat) == command.owner;
}

void SlotDesk::carry_out(SlotCommand command) {
  if (!exists(command.seat)) return refuse(command, SlotOutcome::no_seat);
  if (needs_engine(command.action) && !options_.has_engine()) {
    if (put_off_.size() == deferred_max) return refuse(command, SlotOutcome::busy);
    put_off_.push_back(std::move(command));
    return;
  }
  switch (command.action) {
    case SlotAction::save:
      return save(std::move(command));
    case SlotAction::restore:
      return read(std::move(command));
    case SlotAction::erase:
      return defer({.command = std::move(command), .answer = {}, .file = {}});
    case SlotAction::page_out:
      return page_out(std::move(command));
    case SlotAction::page_in:
      return page_in(std::move(command));
  }
}

void SlotDesk::save(SlotCommand command) {
  if (!holds(command)) return refuse(command, SlotOutcome::empty);
  ByteBuffer state;
  if (const auto done = engine_.export_state(command.seat, state); !done) {
    return refuse(command, outcome_of(done.error()));
  }
  const std::span<const TokenId> tokens = pool_.tokens(command.seat);
  std::vector<std::byte> head = slot_file_head(tokens);
  SlotAnswer answer;
  answer.tokens = length(tokens);
  answer.bytes = Bytes(static_cast<std::int64_t>(head.size() + state.size()));
  const SlotTicket ticket(next_++);
  if (!options_.files->write(ticket, command.owner, command.name, std::move(head),
                             std::move(state))) {
    return refuse(command, SlotOutcome::busy);
  }
  in_files_.emplace(ticket, Pending{std::move(command), answer, {}});
}

void SlotDesk::read(SlotCommand command) {
  const Tokens window = engine_.limits().window;
  const Bytes most = engine_.range_bytes(window) +
                     Bytes(window.value * std::int64_t{sizeof(TokenId)}) + file_overhead_max;
  const SlotTicket ticket(next_++);
  if (!options_.files->read(ticket, command.owner, command.name, most)) {
    return refuse(command, SlotOutcome::busy);
  }
  in_files_.emplace(ticket, Pending{std::move(command), {}, {}});
}

void SlotDesk::take_file(SlotFileDone& done) {
  const auto found = in_files_.find(done.ticket);
  if (found == in_files_.end()) return;
  Pending pending = std::move(found->second);
  in_files_.erase(found);
  if (pending.command.action == SlotAction::save) {
    if (done.error == ENOSPC || done.error == EDQUOT) {
      return refuse(pending.command, SlotOutcome::full);
    }
    if (done.error != 0) return refuse(pending.command, SlotOutcome::failed);
    return give(pending.command, pending.answer);
  }
  if (done.error == EFBIG) return refuse(pending.command, SlotOutcome::too_long);
  if (done.error != 0) return refuse(pending.command, SlotOutcome::bad_file);
  pending.file = std::move(done.bytes);
  defer(std::move(pending));
}

void SlotDesk::defer(Pending pending) {
  if (is_idle(pending.command.seat)) return finish(pending);
  if (deferred_.size() == deferred_max) return refuse(pending.command, SlotOutcome::busy);
  deferred_.push_back(std::move(pending));
}

void SlotDesk::finish(Pending& pending) {
  const SlotCommand& command = pending.command;
  if (!exists(command.seat)) return refuse(command, SlotOutcome::no_seat);
  if (command.action == SlotAction::restore) return restore(pending);
  SlotAnswer answer;
  if (holds(command)) {
    answer.tokens = length(pool_.tokens(command.seat));
    pool_.erase(command.seat);
  }
  give(command, answer);
}

// What the seat holds stays until all is known to be right.
void SlotDesk::restore(Pending& pending) {
  const SlotCommand& command = pending.command;
  if (!options_.has_engine()) return refuse(command, SlotOutcome::no_engine);
  const auto file = read_slot_file(pending.file);
  if (!file) {
    const bool is_version = file.error() == SlotFileFault::other_version;
    return refuse(command, is_version ? SlotOutcome::other_version : SlotOutcome::bad_file);
  }
  const Tokens tokens = length(file->tokens);
  if (tokens >= engine_.limits().window) return refuse(command, SlotOutcome::too_long);
  if (!engine_.is_state(tokens, file->state)) return refuse(command, SlotOutcome::bad_file);
  if (!make_cells(command.seat, tokens)) return refuse(command, SlotOutcome::no_room);
  if (pool_.use(command.seat) == SeatUse::idle) options_.evict(command.seat);
  const auto done =
      pool_.install(command.seat, file->tokens, file->state, command.owner, clock_.now());
  if (!done) return refuse(command, outcome_of(done.error()));
  SlotAnswer answer;
  answer.tokens = tokens;
  answer.bytes = Bytes(static_cast<std::int64_t>(pending.file.size()));
  give(command, answer);
}

// Idle conversations go, the one unused for longest first, until an idle seat can have so many
// cells.
bool SlotDesk::make_cells(Seat seat, Tokens cells) {
  const bool is_pooled = engine_.geometry().layout == Layout::pooled;
  if (!is_pooled || !engine_.capabilities().cells_per_token) return true;
  while (pool_.unpromised() + pool_.ledger().exclusive(seat) < cells) {
    std::optional<Seat> oldest;
    for (std::int32_t s = 0; s < pool_.seats(); ++s) {
      if (Seat(s) == seat || pool_.use(Seat(s)) != SeatUse::idle) continue;
      if (!oldest || pool_.last_used(Seat(s)) < pool_.last_used(*oldest)) oldest = Seat(s);
    }
    if (!oldest) return false;
    options_.evict(*oldest);
  }
  return true;
}

void SlotDesk::page_out(SlotCommand command) {
  if (!holds(command)) return refuse(command, SlotOutcome::empty);
  Image image = pool_.copy_of(command.seat);
  if (image.tokens.empty()) return refuse(command, SlotOutcome::no_room);
  SlotAnswer answer;
  answer.tokens = length(image.tokens);
  answer.bytes = image.size();
  answer.tier = "disk";
  store::Ticket ticket;
  switch (archive_.save_as(command.name, std::move(image), options_.price(answer.tokens), ticket)) {
    case Archive::SaveAs::accepted:
      in_store_.emplace(ticket, Pending{std::move(command), answer, {}});
      return;
    case Archive::SaveAs::stored:
      return give(command, answer);
    case Archive::SaveAs::taken:
      return refuse(command, SlotOutcome::taken);
    case Archive::SaveAs::busy:
      return refuse(command, SlotOutcome::busy);
    case Archive::SaveAs::stopping:
      return refuse(command, SlotOutcome::stopping);
  }
}

void SlotDesk::page_in(SlotCommand command) {
  store::Store& store = *options_.archive.store;
  const auto page = find_page(store, command.owner, command.name);
  if (!page) return refuse(command, SlotOutcome::missing);
  if (page->fingerprint != options_.archive.fingerprint || page->kind != archive_.kind()) {
    return refuse(command, SlotOutcome::other_model);
  }
  if (page->tokens >= engine_.limits().window) return refuse(command, SlotOutcome::too_long);
  const store::Ticket ticket(first_ticket + next_++);
  const std::size_t blocks = store::block_count(page->kind, page->tokens);
  switch (
      store.load(ticket, page->id, page->fingerprint, blocks, pool_.spare_buffers(page->tokens))) {
    case store::Submit::accepted:
      in_store_.emplace(ticket, Pending{std::move(command), {}, {}});
      return;
    case store::Submit::busy:
      return refuse(command, SlotOutcome::busy);
    case store::Submit::stopping:
      return refuse(command, SlotOutcome::stopping);
  }
}

bool SlotDesk::take(store::Completion& completion) {
  const auto found = in_store_.find(completion.ticket);
  if (found == in_store_.end()) return false;
  Pending pending = std::move(found->second);
  in_store_.erase(found);
  if (completion.outcome != store::Outcome::done) {
    refuse(pending.command, outcome_of(completion.outcome));
  } else if (pending.command.action == SlotAction::page_out) {
    give(pending.command, pending.answer);
  } else {
    paged_in(pending.command, completion);
  }
  return true;
}

// To RAM, and from there to the seat, as for a request that goes on from it.
void SlotDesk::paged_in(SlotCommand& command, store::Completion& completion) {
  if (!exists(command.seat)) return refuse(command, SlotOutcome::no_seat);
  if (completion.page.fingerprint != options_.archive.fingerprint) {
    return refuse(command, SlotOutcome::other_model);
  }
  SlotAnswer answer;
  answer.tokens = completion.page.tokens;
  answer.bytes = completion.page.bytes;
  answer.tier = "ram";
  const bool has_engine = options_.has_engine();
  const Owner& owner = command.owner;
  std::vector<TokenId> tokens = std::move(completion.tokens);
  if (!pool_.shelve(tokens, std::move(completion.blocks), completion.page.in_chunks, owner)) {
    return refuse(command, SlotOutcome::no_room);
  }
  tokens.push_back(TokenId{0});  // Whatever comes next.
  const Offer offer = pool_.offer(tokens, owner);
  if (has_engine && is_idle(command.seat) && offer.reuse > Tokens(0) &&
      make_cells(command.seat, offer.cells)) {
    if (pool_.use(command.seat) == SeatUse::idle) options_.evict(command.seat);
    const Tokens held = pool_.take_shelved(command.seat, tokens, offer, owner);
    pool_.give_to(command.seat, owner, completion.page.name);
    pool_.release(command.seat, true, clock_.now());
    if (held == completion.page.tokens) answer.tier = "pool";
  }
  give(command, answer);
}

void SlotDesk::give_up_waiting() {
  for (const SlotCommand& command : put_off_) refuse(command, SlotOutcome::no_engine);
  put_off_.clear();
}

bool SlotDesk::settle() {
  bool worked = false;
  if (waits_for_engine() && options_.has_engine()) {
    for (SlotCommand& command : std::exchange(put_off_, {})) carry_out(std::move(command));
    worked = true;
  }
  if (options_.files != nullptr) {
    done_.clear();
    options_.files->reap(done_);
    for (SlotFileDone& done : done_) take_file(done);
    worked = !done_.empty();
  }
  for (std::size_t i = 0; i < deferred_.size();) {
    if (!is_idle(deferred_[i].command.seat)) {
      ++i;
      continue;
    }
    Pending pending = std::move(deferred_[i]);
    deferred_.erase(deferred_.begin() + static_cast<std::ptrdiff_t>(i));
    finish(pending);
    worked = true;
  }
  return worked;
}

void SlotDesk::stop() {
  for (const auto& [ticket, pending] : in_files_) refuse(pending.command, SlotOutcome::stopping);
  for (const auto& [ticket, pending] : in_store_) refuse(pending.command, SlotOutcome::stopping);
  for (const Pending& pending : deferred_) refuse(pending.command, SlotOutcome::stopping);
  for (const SlotCommand& command : put_off_) refuse(command, SlotOutcome::stopping);
  in_files_.clear();
  in_store_.clear();
  deferred_.clear();
  put_off_.clear();
}

}  // namespace fermata::kv
