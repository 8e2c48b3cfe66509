#include "scheduler/embeddings.h"

#include "base/check.h"
#include "scheduler/status.h"

#include <utility>

namespace fermata::scheduler {

Embeddings::Embeddings(engine::Embedder* embedder, std::size_t waiting_max,
                       std::atomic<std::int64_t>& waiting, SchedulerStats& stats)
    : embedder_(embedder),
      waiting_max_(static_cast<std::int64_t>(waiting_max)),
      waiting_(waiting),
      stats_(stats),
      inbox_(waiting_max + 1) {}

PushOutcome Embeddings::push(EmbedJob& job) {
  FERMATA_CHECK(embedder_ != nullptr && !job.texts.empty(), "nothing to embed, or nobody who can");
  PushOutcome outcome = PushOutcome::full;
  if (waiting_.fetch_add(1, std::memory_order_relaxed) < waiting_max_) {
    outcome = inbox_.push(std::move(job));
  }
  if (outcome != PushOutcome::pushed) waiting_.fetch_sub(1, std::memory_order_relaxed);
  return outcome;
}

void Embeddings::drain() {
  inbox_.drain(drained_);
  for (EmbedJob& job : drained_) jobs_.push_back({std::move(job), {}});
  drained_.clear();
}

void Embeddings::finish(Running& running, EmbedEnd end) {
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  stats_.requests_finished.add();
  if (end != EmbedEnd::done) stats_.requests_failed.add();
  EmbedResult result;
  result.end = end;
  if (end == EmbedEnd::done) result.vectors = std::move(running.vectors);
  running.job.reply->give(std::move(result));
}

// As many of the job's next texts as go together.
bool Embeddings::work() {
  drain();
  if (jobs_.empty()) return false;
  Running& first = jobs_.front();
  const std::atomic<bool>& abandoned = first.job.reply->abandoned();
  const engine::EmbedderLimits& limits = embedder_->limits();
  texts_.clear();
  Tokens together{0};
  for (std::size_t i = first.vectors.size(); i < first.job.texts.size(); ++i) {
    const std::vector<TokenId>& text = first.job.texts[i];
    const Tokens length{static_cast<std::int64_t>(text.size())};
    const bool is_full = texts_.size() == static_cast<std::size_t>(limits.texts) ||
                         together + length > limits.together;
    if (!texts_.empty() && is_full) break;
    texts_.emplace_back(text);
    together += length;
  }
  const engine::EmbedOutcome outcome = abandoned.load(std::memory_order_acquire)
                                           ? engine::EmbedOutcome::cancelled
                                           : embedder_->embed(texts_, abandoned, vectors_);
  if (outcome == engine::EmbedOutcome::done) {
    stats_.embedded_tokens.add(static_cast<std::uint64_t>(together.value));
    for (engine::TextVectors& of : vectors_) first.vectors.push_back(std::move(of));
    if (first.vectors.size() < first.job.texts.size()) return true;
  }
  finish(first, outcome == engine::EmbedOutcome::done ? EmbedEnd::done : EmbedEnd::failed);
  jobs_.pop_front();
  return true;
}

void Embeddings::end_all() {
  drain();
  for (Running& running : jobs_) finish(running, EmbedEnd::stopping);
  jobs_.clear();
}

}  // namespace fermata::scheduler
