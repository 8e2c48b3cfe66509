// The scheduler's part in what clients ask of saved conversations.
#include "base/check.h"
#include "scheduler/scheduler.h"

#include <utility>

namespace fermata::scheduler {

SubmitOutcome Scheduler::push(Question question) {
  const PushOutcome pushed = questions_.push(std::move(question));
  inbox_.poke();
  if (pushed == PushOutcome::pushed) return SubmitOutcome::accepted;
  return pushed == PushOutcome::full ? SubmitOutcome::queue_full : SubmitOutcome::stopping;
}

SubmitOutcome Scheduler::ask(PageCommand command) {
  FERMATA_CHECK(keeps_pages(), "a question about pages that nobody keeps");
  if (command.action != PageAction::import) return push(std::move(command));
  const auto reply = command.reply;
  auto checked = page_desk_.gate().check(std::move(command));
  if (checked) return push(std::move(*checked));
  reply->give({.outcome = checked.error()});
  return SubmitOutcome::accepted;
}

SubmitOutcome Scheduler::ask(SlotCommand command) {
  const bool is_paged =
      command.action == SlotAction::page_out || command.action == SlotAction::page_in;
  FERMATA_CHECK(is_paged ? keeps_pages() : options_.slot_files != nullptr,
                "a question about what nobody keeps");
  command.asked = clock_.now();
  return push(std::move(command));
}

bool Scheduler::take_questions() {
  questions_.drain(from_outside_.questions);
  for (Question& question : from_outside_.questions) {
    if (auto* of_page = std::get_if<PageCommand>(&question)) {
      page_desk_.carry_out(std::move(*of_page));
    } else if (auto* import = std::get_if<kv::PageImport>(&question)) {
      page_desk_.carry_out(std::move(*import));
    } else {
      slot_desk_.carry_out(std::move(std::get<SlotCommand>(question)));
    }
  }
  return slot_desk_.settle() || !from_outside_.questions.empty();
}

void Scheduler::refuse_questions() {
  questions_.close();
  questions_.drain(from_outside_.questions);
  for (const Question& question : from_outside_.questions) {
    if (const auto* of_page = std::get_if<PageCommand>(&question)) {
      of_page->reply->give({.outcome = PageOutcome::stopping});
    } else if (const auto* import = std::get_if<kv::PageImport>(&question)) {
      import->command.reply->give({.outcome = PageOutcome::stopping});
    } else {
      std::get<SlotCommand>(question).reply->give({.outcome = SlotOutcome::stopping});
    }
  }
  from_outside_.questions.clear();
  page_desk_.stop();
  slot_desk_.stop();
}

}  // namespace fermata::scheduler
