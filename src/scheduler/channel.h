// The way back to one client: a bounded channel of token events and exactly one final event. A
// client that does not read fills its own channel, and the scheduler sees that and nothing else.
#pragma once

#include "core/events.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace fermata::scheduler {

// Two sides, shared by both: the scheduler thread writes, one reader takes. Either may be destroyed
// first.
class EventChannel {
 public:
  // REQUIRES: limit >= 1. `poke_scheduler` is called from the reader's thread when the scheduler
  // may go on with this request, or must drop it; never after finish(). It must not call back.
  EventChannel(std::size_t limit, std::function<void()> poke_scheduler);

  // --- Scheduler's side ---

  bool has_room() const;
  // REQUIRES: has_room(); not finished.
  void push(TokenEvent event);
  // The latest progress of the prompt; an earlier one that was not taken is replaced.
  void progress(const ProgressEvent& event);
  // Never refused. A reader that leaves more unread than it has room for tokens is spared a pair.
  void notice(NoticeKind kind);
  // Never refused, whatever the limit. REQUIRES: called once.
  void finish(FinalEvent event);
  // True from the reader's abandon() on; read by the engine inside a step.
  const std::atomic<bool>& abandoned() const { return abandoned_; }

  // --- Reader's side ---

  // `wake` is called from the scheduler thread when at least `tokens` token events wait (or half of
  // the limit), after progress and at the end; it must be cheap and must not call back.
  void wake_with(std::function<void()> wake, std::size_t tokens = 1);

  struct Taken {
    std::vector<TokenEvent> tokens;
    std::vector<Notice> notices;
    std::optional<ProgressEvent> progress;
    std::optional<FinalEvent> final;
  };
  // Everything there is, into `out` (cleared first; reusing it saves allocation). Never blocks.
  void take(Taken& out);
  // The reader does not want the rest: the request ends within one ubatch.
  void abandon();

 private:
  const std::size_t limit_;
  const std::function<void()> poke_scheduler_;
  std::atomic<bool> abandoned_{false};
  mutable std::mutex mutex_;
  Taken content_;
  bool finished_ = false;
  std::function<void()> wake_;
  std::size_t wake_at_ = 1;
};

}  // namespace fermata::scheduler
