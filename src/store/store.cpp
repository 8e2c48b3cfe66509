#include "store/store.h"

#include "base/bounded_queue.h"
#include "base/check.h"
#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

namespace fermata::store {
namespace {

constexpr Micros no_deadline{std::numeric_limits<std::int64_t>::max()};
constexpr Micros housekeeping_every{60'000'000};
constexpr Micros idle_before_collecting{1'000'000};

struct Job {
  Ticket ticket;
  Operation operation = Operation::save;
  Draft draft;                      // save
  std::vector<BlockBytes> given;    // save
  PageId id;                        // All but save and list.
  Fingerprint fingerprint{};        // load
  std::size_t blocks = 0;           // load; read_part: which.
  std::vector<ByteBuffer> buffers;  // load
  bool held = false;                // load
  bool pinned = false;              // pin
  std::string text;                 // rename, fork: the new name; list: the prefix
  std::optional<Owner> owner;       // list
};

Bytes size_of(const std::vector<BlockBytes>& blocks) {
  Bytes sum;
  for (const BlockBytes& block : blocks) {
    sum += Bytes(static_cast<std::int64_t>(block.bytes.size()));
  }
  return sum;
}

Job job_of(Ticket ticket, Operation operation, const PageId& id = {}) {
  Job job;
  job.ticket = ticket;
  job.operation = operation;
  job.id = id;
  return job;
}

}  // namespace

struct Store::Parts {
  explicit Parts(StoreOptions options_in)
      : options(std::move(options_in)),
        writes(options.in_flight_max),
        reads(options.in_flight_max),
        done(options.in_flight_max) {}

  Submit submit(Job job, BoundedQueue<Job>& queue);
  void work(BoundedQueue<Job>& queue, bool writer);
  void keep_house(bool& collect);
  void run(Job job);
  Outcome perform(Job& job, Completion& out);
  bool go_on() const { return clock.now() < Micros(deadline_us.load(std::memory_order_relaxed)); }

  const StoreOptions options;
  const SteadyClock clock;
  std::unique_ptr<Keeper> keeper;
  BoundedQueue<Job> writes, reads;
  BoundedQueue<Completion> done;
  std::atomic<std::size_t> in_flight{0};
  std::atomic<std::int64_t> bytes_in_flight{0};
  std::atomic<std::int64_t> deadline_us{no_deadline.value};
  std::atomic<bool> stopping{false};  // The deadline is set.
  std::atomic<bool> closing{false};   // Both queues are closed.
  std::vector<Completion> reaped;     // Of reap().
  std::mutex close_mutex;
  bool closed = false;
  CloseReport report;  // The writer's, and close()'s once the writer has ended.
  std::thread writer, reader;
};

Submit Store::Parts::submit(Job job, BoundedQueue<Job>& queue) {
  if (stopping.load()) return Submit::stopping;
  const Bytes bytes = size_of(job.given);
  if (in_flight.fetch_add(1) >= options.in_flight_max) {
    in_flight.fetch_sub(1);
    return Submit::busy;
  }
  const std::int64_t before = bytes_in_flight.fetch_add(bytes.value);
  const bool too_many =
      before > 0 && bytes.value > 0 && before + bytes.value > options.bytes_in_flight_max.value;
  const PageId id = job.id;
  const bool load = job.operation == Operation::load || job.operation == Operation::read_part;
  const bool held = !too_many && load && keeper->hold(id);
  job.held = held;
  const PushOutcome pushed = too_many ? PushOutcome::full : queue.push(std::move(job));
  if (pushed == PushOutcome::pushed) return Submit::accepted;
  if (held) keeper->let_go(id);
  bytes_in_flight.fetch_sub(bytes.value);
  in_flight.fetch_sub(1);
  return pushed == PushOutcome::full ? Submit::busy : Submit::stopping;
}

void Store::Parts::keep_house(bool& collect) {
  if (std::exchange(collect, false)) {
    const GcReport gc = keeper->gc();
    log_info("pages: the folder was not closed last time; {} files of no use were removed",
             gc.removed);
    return;
  }
  keeper->expire();
}

void Store::Parts::work(BoundedQueue<Job>& queue, bool is_writer) {
  bool collect = is_writer && keeper->opened().unclean;
  std::vector<Job> batch;
  for (;;) {
    queue.wait(collect ? idle_before_collecting : housekeeping_every);
    // Read before the queue: what is in it afterwards came before it was closed.
    const bool last = closing.load();
    queue.drain(batch);
    for (Job& job : batch) run(std::move(job));
    if (last) return;
    if (batch.empty() && is_writer) keep_house(collect);
  }
}

Outcome Store::Parts::perform(Job& job, Completion& out) {
  switch (job.operation) {
    case Operation::save:
      return keeper->save(job.draft, job.given, out.page, [this] { return go_on(); });
    case Operation::load: {
      Loaded loaded;
      loaded.blocks = std::move(job.buffers);
      const Outcome outcome = keeper->load(job.id, job.fingerprint, job.blocks, loaded);
      out.page = std::move(loaded.page);
      out.tokens = std::move(loaded.tokens);
      out.extra = std::move(loaded.extra);
      out.blocks = std::move(loaded.blocks);
      return outcome;
    }
    case Operation::read_part:
      out.blocks.resize(1);
      return keeper->read_part(job.id, job.blocks, out.blocks.front(), out.page);
    case Operation::erase:
      return keeper->erase(job.id);
    case Operation::drop:
      return keeper->drop(job.id);
    case Operation::pin:
      return keeper->pin(job.id, job.pinned, out.page);
    case Operation::rename:
      return keeper->rename(job.id, job.text, out.page);
    case Operation::fork:
      return keeper->fork(job.id, job.text, out.page);
    case Operation::list:
      out.pages = keeper->list(job.owner, job.text);
      return Outcome::done;
  }
  return Outcome::failed;
}

void Store::Parts::run(Job job) {
  const Micros began = clock.now();
  Completion out;
  out.ticket = job.ticket;
  out.operation = job.operation;
  out.outcome = go_on() ? perform(job, out) : Outcome::stopping;
  if (job.held) keeper->let_go(job.id);
  if (job.operation == Operation::save && stopping.load()) {
    const Bytes bytes = size_of(job.given);
    const bool saved = out.outcome == Outcome::done;
    ++(saved ? report.saved : report.not_saved);
    (saved ? report.bytes_saved : report.bytes_not_saved) += bytes;
  }
  out.given = std::move(job.given);
  out.took = clock.now() - began;
  const PushOutcome pushed = done.push(std::move(out));
  FERMATA_CHECK(pushed == PushOutcome::pushed, "there is room for what is in flight");
  if (options.wake) options.wake();
}

Store::Store(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Store::~Store() { close(Micros(0)); }

Result<std::unique_ptr<Store>, std::string> Store::open(StoreOptions options) {
  FERMATA_CHECK(options.in_flight_max > 0, "operations can be under way");
  auto parts = std::make_unique<Parts>(std::move(options));
  auto keeper = Keeper::open(parts->options.keeper, parts->clock);
  if (!keeper.ok()) return Err{keeper.error()};
  parts->keeper = std::move(*keeper);
  Parts& all = *parts;
  parts->writer = std::thread([&all] { all.work(all.writes, true); });
  parts->reader = std::thread([&all] { all.work(all.reads, false); });
  return std::unique_ptr<Store>(new Store(std::move(parts)));
}

std::optional<Match> Store::find(const Owner& owner, const Fingerprint& fingerprint, Kind kind,
                                 std::span<const TokenId> tokens) const {
  return parts_->keeper->find(owner, fingerprint, kind, tokens);
}

std::optional<Page> Store::find(const Owner& owner, std::string_view name) const {
  return parts_->keeper->find(owner, name);
}

std::optional<Page> Store::find(const PageId& id) const { return parts_->keeper->find(id); }

bool Store::hold(const PageId& id) { return parts_->keeper->hold(id); }
void Store::let_go(const PageId& id) { parts_->keeper->let_go(id); }

Submit Store::save(Ticket ticket, Draft draft, std::vector<BlockBytes> blocks) {
  Job job = job_of(ticket, Operation::save);
  job.draft = std::move(draft);
  job.given = std::move(blocks);
  return parts_->submit(std::move(job), parts_->writes);
}

Submit Store::load(Ticket ticket, const PageId& id, const Fingerprint& fingerprint,
                   std::size_t blocks, std::vector<ByteBuffer> buffers) {
  Job job = job_of(ticket, Operation::load, id);
  job.fingerprint = fingerprint;
  job.blocks = blocks;
  job.buffers = std::move(buffers);
  return parts_->submit(std::move(job), parts_->reads);
}

Submit Store::read_part(Ticket ticket, const PageId& id, std::size_t part) {
  Job job = job_of(ticket, Operation::read_part, id);
  job.blocks = part;
  return parts_->submit(std::move(job), parts_->reads);
}

Submit Store::erase(Ticket ticket, const PageId& id) {
  return parts_->submit(job_of(ticket, Operation::erase, id), parts_->writes);
}

Submit Store::drop(Ticket ticket, const PageId& id) {
  return parts_->submit(job_of(ticket, Operation::drop, id), parts_->writes);
}

Submit Store::pin(Ticket ticket, const PageId& id, bool pinned) {
  Job job = job_of(ticket, Operation::pin, id);
  job.pinned = pinned;
  return parts_->submit(std::move(job), parts_->writes);
}

Submit Store::rename(Ticket ticket, const PageId& id, std::string to) {
  Job job = job_of(ticket, Operation::rename, id);
  job.text = std::move(to);
  return parts_->submit(std::move(job), parts_->writes);
}

Submit Store::fork(Ticket ticket, const PageId& id, std::string to) {
  Job job = job_of(ticket, Operation::fork, id);
  job.text = std::move(to);
  return parts_->submit(std::move(job), parts_->writes);
}

Submit Store::list(Ticket ticket, std::optional<Owner> owner, std::string prefix) {
  Job job = job_of(ticket, Operation::list);
  job.owner = owner;
  job.text = std::move(prefix);
  return parts_->submit(std::move(job), parts_->reads);
}

void Store::reap(std::vector<Completion>& out) {
  parts_->done.drain(parts_->reaped);
  for (Completion& completion : parts_->reaped) {
    parts_->bytes_in_flight.fetch_sub(size_of(completion.given).value);
    parts_->in_flight.fetch_sub(1);
    out.push_back(std::move(completion));
  }
  parts_->reaped.clear();
}

CloseReport Store::close(Micros within) {
  const std::lock_guard lock(parts_->close_mutex);
  if (parts_->closed) return parts_->report;
  parts_->closed = true;
  parts_->deadline_us = (parts_->clock.now() + within).value;
  parts_->stopping = true;
  for (BoundedQueue<Job>* queue : {&parts_->writes, &parts_->reads}) queue->close();
  parts_->closing = true;
  for (BoundedQueue<Job>* queue : {&parts_->writes, &parts_->reads}) queue->poke();
  parts_->writer.join();
  parts_->reader.join();
  parts_->keeper->close();
  return parts_->report;
}

std::size_t Store::in_flight() const { return parts_->in_flight.load(); }
const StoreStats& Store::stats() const { return parts_->keeper->stats(); }
const TierStats& Store::disk() const { return parts_->keeper->disk(); }
const OpenReport& Store::opened() const { return parts_->keeper->opened(); }

}  // namespace fermata::store
