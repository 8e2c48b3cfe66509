// Texts that become vectors: they wait in one queue, and the scheduler computes some of them
// between its steps. They take no seat and no cells, and nothing is left of them.
#pragma once

#include "base/bounded_queue.h"
#include "base/reply.h"
#include "base/types.h"
#include "engine/embedder.h"

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace fermata::scheduler {

struct SchedulerStats;

enum class EmbedEnd : std::uint8_t { done, failed, stopping };

struct EmbedResult {
  EmbedEnd end = EmbedEnd::done;
  std::vector<engine::TextVectors> vectors;  // Of each text, in their order.
};
using EmbedReply = Reply<EmbedResult>;

// Of one client request. Exactly one result comes, unless the reply is abandoned.
struct EmbedJob {
  std::vector<std::vector<TokenId>> texts;  // At least one, within the embedder's limits.
  std::shared_ptr<EmbedReply> reply;
};

class Embeddings {
 public:
  // `embedder` may be null: then there are no jobs. `waiting` counts jobs as well as what else
  // waits; at most `waiting_max`.
  Embeddings(engine::Embedder* embedder, std::size_t waiting_max,
             std::atomic<std::int64_t>& waiting, SchedulerStats& stats);
  ~Embeddings() { end_all(); }
  Embeddings(const Embeddings&) = delete;
  Embeddings& operator=(const Embeddings&) = delete;

  // --- Any thread ---

  // REQUIRES: there is an embedder. Moved from only when pushed.
  [[nodiscard]] PushOutcome push(EmbedJob& job);
  void close() { inbox_.close(); }
  bool is_waited_for() const { return inbox_.size() > 0; }

  // --- The scheduler thread ---

  // One call of the embedder for the first job, if there is one. False: there was nothing to do.
  bool work();
  // All jobs, and those that still come, end as `stopping`.
  void end_all();

 private:
  struct Running {
    EmbedJob job;
    std::vector<engine::TextVectors> vectors;
  };
  void drain();
  void finish(Running& running, EmbedEnd end);

  engine::Embedder* const embedder_;
  const std::int64_t waiting_max_;
  std::atomic<std::int64_t>& waiting_;
  SchedulerStats& stats_;
  BoundedQueue<EmbedJob> inbox_;
  std::deque<Running> jobs_;  // tidy: allow queue: push() bounds it by waiting_max_
  // Reused.
  std::vector<EmbedJob> drained_;
  std::vector<std::span<const TokenId>> texts_;
  std::vector<engine::TextVectors> vectors_;
};

}  // namespace fermata::scheduler
