#include "scheduler/channel.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace fermata::scheduler {

EventChannel::EventChannel(std::size_t limit, std::function<void()> poke_scheduler)
    : limit_(limit), poke_scheduler_(std::move(poke_scheduler)) {
  FERMATA_CHECK(limit >= 1, "a channel that holds nothing");
}

bool EventChannel::has_room() const {
  const std::lock_guard lock(mutex_);
  return content_.tokens.size() < limit_;
}

void EventChannel::push(TokenEvent event) {
  const std::lock_guard lock(mutex_);
  FERMATA_CHECK(!finished_, "an event after the final one");
  FERMATA_CHECK(content_.tokens.size() < limit_, "an event for a channel without room");
  content_.tokens.push_back(std::move(event));
  if (wake_ && content_.tokens.size() >= wake_at_) wake_();
}

void EventChannel::progress(const ProgressEvent& event) {
  const std::lock_guard lock(mutex_);
  FERMATA_CHECK(!finished_, "an event after the final one");
  content_.progress = event;
  if (wake_) wake_();
}

void EventChannel::notice(NoticeKind kind) {
  const std::lock_guard lock(mutex_);
  FERMATA_CHECK(!finished_, "an event after the final one");
  std::vector<Notice>& notices = content_.notices;
  const bool is_crowded = notices.size() > 2 * limit_;
  if (is_crowded && kind == NoticeKind::reconfigured) return;
  if (is_crowded && kind == NoticeKind::resumed && notices.back().kind == NoticeKind::preempted) {
    notices.pop_back();
  } else {
    notices.push_back({kind, content_.tokens.size()});
  }
  if (wake_) wake_();
}

void EventChannel::finish(FinalEvent event) {
  const std::lock_guard lock(mutex_);
  FERMATA_CHECK(!finished_, "a second final event");
  finished_ = true;
  content_.final = std::move(event);
  if (wake_) wake_();
}

void EventChannel::wake_with(std::function<void()> wake, std::size_t tokens) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
  wake_at_ = std::clamp<std::size_t>(tokens, 1, std::max<std::size_t>(limit_ / 2, 1));
}

void EventChannel::take(Taken& out) {
  out.tokens.clear();
  out.notices.clear();
  out.progress.reset();
  out.final.reset();
  const std::lock_guard lock(mutex_);
  const bool was_full = content_.tokens.size() >= limit_;
  std::swap(out, content_);
  // Under the lock: once finish() has returned, the scheduler may be gone.
  if (was_full && !finished_) poke_scheduler_();
}

void EventChannel::abandon() {
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
  if (finished_) return;
  abandoned_.store(true, std::memory_order_release);
  poke_scheduler_();
}

}  // namespace fermata::scheduler
