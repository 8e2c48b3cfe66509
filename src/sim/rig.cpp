#include "sim/rig.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace fermata::sim {

bool Client::read() {
  scheduler::EventChannel::Taken taken;
  channel->take(taken);
  for (const Notice& notice : taken.notices) {
    if (notice.kind == NoticeKind::reconfigured) {
      ++reconfigured;
      continue;
    }
    ++(notice.kind == NoticeKind::preempted ? preempted : resumed);
    tokens_at_notice.push_back(tokens.size() + notice.after);
  }
  for (const TokenEvent& event : taken.tokens) {
    text += event.text;
    tokens.push_back(event);
  }
  const bool any = !taken.tokens.empty() || taken.final;
  if (taken.progress) progress.push_back(*taken.progress);
  if (taken.final) {
    ++n_final;
    text += taken.final->text;
    final = std::move(taken.final);
  }
  return any;
}

Rig::Rig(const RigSpec& spec) : vocabulary_(engine::fake::make_vocabulary()) {
  engine::fake::FakeModelSpec model = spec.model;
  model.clock = &clock_;
  workshop_ = std::make_unique<TickWorkshop>(model, spec.engine, spec.workshop_seed);
  const auto engine = workshop_->build(spec.geometry);
  FERMATA_CHECK(engine.ok(), "no engine to begin with");
  scheduler::SchedulerOptions options = spec.scheduler;
  options.workshop = workshop_.get();
  if (spec.spill) {
    options.make_spill = [this, of = *spec.spill] {
      auto spill = std::make_unique<TickSpill>(of);
      spill_ = spill.get();
      return spill;
    };
  }
  scheduler_ = std::make_unique<scheduler::Scheduler>(**engine, *vocabulary_, clock_, options);
}

std::unique_ptr<Client> Rig::submit(const Ask& ask) { return std::move(submit(ask, 1).front()); }

std::vector<std::unique_ptr<Client>> Rig::submit(const Ask& ask, std::size_t choices) {
  return submit(std::span(&ask, 1), choices);
}

std::vector<std::unique_ptr<Client>> Rig::submit(std::span<const Ask> asks, std::size_t choices) {
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<scheduler::Submission> submissions;
  for (const Ask& ask : asks) {
    const GroupId group(choices > 1 ? next_id_ : 0);
    for (std::size_t i = 0; i < choices; ++i) {
      clients.push_back(prepare(ask, i, group, submissions));
    }
  }
  const scheduler::SubmitOutcome outcome = scheduler_->submit(submissions);
  for (const auto& client : clients) client->outcome = outcome;
  return clients;
}

std::unique_ptr<Client> Rig::prepare(const Ask& ask, std::size_t choice, GroupId group,
                                     std::vector<scheduler::Submission>& submissions) {
  auto request = std::make_shared<Request>();
  request->id = RequestId(next_id_++);
  request->prompt = vocabulary_->tokenize(ask.prompt, true, true);
  request->max_tokens = Tokens(ask.max_tokens);
  request->stop = ask.stop;
  request->cache_prompt = ask.cache_prompt;
  request->seat = ask.seat;
  request->priority = ask.priority;
  request->group = group;
  request->n_indent = ask.n_indent;
  request->n_keep = Tokens(ask.n_keep);
  request->n_discard = Tokens(ask.n_discard);
  request->predict_time_max = ask.predict_time_max;
  request->wants_progress = ask.wants_progress;
  request->wants_timings = ask.wants_timings;
  request->sampling.temperature = ask.temperature;
  request->sampling.seed = ask.seed + static_cast<std::uint32_t>(choice);
  request->sampling.grammar = ask.grammar;
  request->sampling.n_probs = ask.n_probs;

  auto client = std::make_unique<Client>();
  client->id = request->id;
  client->channel = scheduler_->open_channel();
  scheduler::Submission submission;
  if (ask.max_tokens != 0) {
    auto sampler = vocabulary_->make_sampler(request->sampling, request->prompt);
    FERMATA_CHECK(sampler.ok(), "a grammar that the fake does not know");
    submission.sampler = std::move(sampler).value();
  }
  submission.request = std::move(request);
  submission.channel = client->channel;
  submissions.push_back(std::move(submission));
  return client;
}

std::shared_ptr<scheduler::HoldReply> Rig::hold(scheduler::HoldAction action, RequestId id) {
  auto reply = std::make_shared<scheduler::HoldReply>();
  FERMATA_CHECK(scheduler_->hold({.action = action, .seat = {}, .id = id, .reply = reply}) ==
                    scheduler::SubmitOutcome::accepted,
                "an operator asks too often");
  return reply;
}

std::shared_ptr<scheduler::HoldReply> Rig::hold(scheduler::HoldAction action, Seat seat) {
  auto reply = std::make_shared<scheduler::HoldReply>();
  FERMATA_CHECK(scheduler_->hold({.action = action, .seat = seat, .id = {}, .reply = reply}) ==
                    scheduler::SubmitOutcome::accepted,
                "an operator asks too often");
  return reply;
}

std::shared_ptr<scheduler::ChangeReply> Rig::change(const reconfigure::Change& change) {
  auto reply = std::make_shared<scheduler::ChangeReply>();
  const auto outcome = scheduler_->reconfigure({.change = change, .reply = reply});
  return outcome == scheduler::SubmitOutcome::accepted ? reply : nullptr;
}

void Rig::run(const std::vector<Client*>& readers, int ticks_max) {
  for (int i = 0; i < ticks_max; ++i) {
    bool worked = scheduler_->tick();
    for (Client* client : readers) worked |= client->read();
    if (!worked) return;
  }
  FERMATA_CHECK(false, "still busy after as many ticks as were allowed");
}

void make_deterministic(RigSpec& spec) {
  spec.geometry.layout = Layout::split;
  spec.engine.one_sequence_per_ubatch = true;
  // So that a piece of a prompt is as long with any number of seats.
  spec.engine.n_batch = std::max(spec.engine.n_batch, spec.engine.n_ubatch);
  spec.scheduler.deterministic = true;
  spec.model.shape_matters = true;
}

Client solo_run(const engine::fake::FakeModelSpec& model, const Ask& ask, Tokens window,
                Tokens chunk, bool context_shift) {
  RigSpec spec;
  spec.model = model;
  spec.model.faults = {};
  spec.model.cost = {};
  spec.scheduler.context_shift = context_shift;
  spec.geometry.n_ctx = window;
  spec.geometry.n_parallel = 1;
  spec.engine.n_batch = spec.engine.n_ubatch = Tokens(4096);
  if (chunk > Tokens(0)) {
    spec.engine.n_ubatch = chunk;
    make_deterministic(spec);
  }
  Rig rig(spec);
  Ask alone = ask;
  alone.seat.reset();
  const auto client = rig.submit(alone);
  rig.run({client.get()});
  return *client;
}

}  // namespace fermata::sim
