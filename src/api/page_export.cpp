#include "api/page_export.h"

#include "api/accepted.h"
#include "api/pages.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace fermata::api {
namespace {

constexpr std::string_view too_many = "too many questions about pages wait; try again later";

// Holds one part, and the page so that it stays.
class PageExport final : public Exchange {
 public:
  PageExport(scheduler::Scheduler& scheduler, PageCommand command)
      : scheduler_(scheduler), command_(std::move(command)) {}
  ~PageExport() override {
    if (reply_) reply_->wake_with(nullptr);
  }
  PageExport(const PageExport&) = delete;
  PageExport& operator=(const PageExport&) = delete;

  // Throws ApiError.
  void ask_first() { check_accepted(ask(), ErrorType::rate_limit, std::string(too_many)); }

  Piece pull() override {
    auto answer = reply_->take();
    if (!answer) return {};
    if (answer->outcome != PageOutcome::done) return end_early(answer->outcome);
    Piece out;
    if (command_.part == 0) {
      hold_ = std::move(answer->hold);
      command_.name = std::move(answer->id);
      out.head = head(answer->bytes);
    }
    out.body.assign(reinterpret_cast<const char*>(answer->part.data()), answer->part.size());
    out.done = answer->is_last;
    ++command_.part;
    if (!out.done && ask() != scheduler::SubmitOutcome::accepted) {
      reply_->give({.outcome = PageOutcome::busy});
    }
    return out;
  }
  void wake_with(std::function<void()> wake) override {
    wake_ = std::move(wake);
    reply_->wake_with(wake_);
  }
  std::string_view ping() const override { return {}; }
  int ping_interval_seconds() const override { return 0; }

 private:
  scheduler::SubmitOutcome ask() {
    if (reply_) reply_->wake_with(nullptr);
    reply_ = std::make_shared<Reply<PageAnswer>>();
    reply_->wake_with(wake_);
    command_.reply = reply_;
    return scheduler_.ask(command_);
  }
  Head head(Bytes length) const {
    Head out;
    out.content_type = "application/octet-stream";
    out.headers = {{"Content-Disposition", "attachment; filename=\"" + name_ + ".page\""}};
    out.stream = true;
    out.length = static_cast<std::uint64_t>(length.value);
    return out;
  }
  Piece end_early(PageOutcome outcome) const {
    if (command_.part == 0) return page_error(command_, outcome)->pull();
    Piece out;
    out.broken = true;
    return out;
  }

  scheduler::Scheduler& scheduler_;
  PageCommand command_;
  const std::string name_ = command_.name;
  std::shared_ptr<Reply<PageAnswer>> reply_;
  std::shared_ptr<const void> hold_;
  std::function<void()> wake_;
};

}  // namespace

std::unique_ptr<Exchange> page_export(const Context& context, PageCommand command) {
  auto out = std::make_unique<PageExport>(*context.scheduler, std::move(command));
  out->ask_first();
  return out;
}

}  // namespace fermata::api
