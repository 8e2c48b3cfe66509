// The deterministic mode on the real library: random schedules of parks, cancels and slow readers,
// and every reply is compared bit for bit with the request alone on a fresh engine.
#include "base/random.h"
#include "scheduler/scheduler.h"
#include "sim/rig.h"
#include "support/llama_models.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fermata {
namespace {

using engine::llama::RandomModelKind;
using sim::Client;

struct Rules {
  std::string model;
  Geometry geometry;
  engine::EngineOptions engine;
  scheduler::SchedulerOptions scheduler;
};

struct Wish {
  std::vector<TokenId> prompt;
  std::int64_t max_tokens;
  float temperature;
  std::uint32_t seed;
};

// A scheduler on a fresh context, ticked by the test.
class Server {
 public:
  explicit Server(const Rules& rules) {
    auto built = testing::load_test_model(rules.model)->build(rules.geometry, rules.engine);
    EXPECT_TRUE(built.ok()) << built.error().message;
    engine_ = std::move(built).value();
    scheduler_ = std::make_unique<scheduler::Scheduler>(*engine_, *testing::tiny_vocabulary(),
                                                        clock_, rules.scheduler);
  }

  std::unique_ptr<Client> submit(const Wish& wish) {
    auto request = std::make_shared<Request>();
    request->id = RequestId(next_id_++);
    request->prompt = wish.prompt;
    request->max_tokens = Tokens(wish.max_tokens);
    request->sampling.temperature = wish.temperature;
    request->sampling.seed = wish.seed;
    request->sampling.n_probs = 3;
    request->sampling.ignore_eos = true;
    auto client = std::make_unique<Client>();
    client->channel = scheduler_->open_channel();
    std::vector<scheduler::Submission> submissions(1);
    scheduler::Submission& submission = submissions.front();
    auto sampler = testing::tiny_vocabulary()->make_sampler(request->sampling, request->prompt);
    EXPECT_TRUE(sampler.ok());
    submission.sampler = std::move(sampler).value();
    submission.request = std::move(request);
    submission.channel = client->channel;
    EXPECT_EQ(scheduler_->submit(submissions), scheduler::SubmitOutcome::accepted);
    return client;
  }

  void tick(Micros pause) {
    clock_.advance(pause);
    scheduler_->tick();
  }
  const scheduler::SchedulerStats& stats() const { return scheduler_->stats(); }

 private:
  FakeClock clock_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::uint64_t next_id_ = 1;
};

Client alone(Rules rules, const Wish& wish) {
  rules.scheduler.preempt.every = Tokens(0);
  Server server(rules);
  const auto client = server.submit(wish);
  while (client->n_final == 0) {
    server.tick(Micros(1));
    client->read();
  }
  return *client;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool same_bits(const TokenEvent& a, const TokenEvent& b) {
  if (a.token != b.token || a.text != b.text || !same_bits(a.logprob, b.logprob)) return false;
  if (a.top.size() != b.top.size()) return false;
  for (std::size_t i = 0; i < a.top.size(); ++i) {
    if (a.top[i].token != b.top[i].token || !same_bits(a.top[i].value, b.top[i].value)) {
      return false;
    }
  }
  return true;
}

// A client that left has a prefix.
void expect_same(const Client& got, const Client& solo) {
  ASSERT_TRUE(got.final.has_value());
  const bool left = got.final->reason == FinishReason::cancelled;
  if (left) {
    ASSERT_LE(got.tokens.size(), solo.tokens.size());
  } else {
    ASSERT_EQ(got.final->reason, solo.final->reason);
    ASSERT_EQ(got.tokens.size(), solo.tokens.size());
    EXPECT_TRUE(got.text == solo.text);
  }
  for (std::size_t i = 0; i < got.tokens.size(); ++i) {
    ASSERT_TRUE(same_bits(got.tokens[i], solo.tokens[i]))
        << "token " << i << " of " << got.tokens.size() << ": " << got.tokens[i].logprob
        << " instead of " << solo.tokens[i].logprob;
  }
}

struct Setting {
  const char* name;
  RandomModelKind kind;
  std::int32_t threads = 1;
  std::uint64_t seeds = 6;
  int requests = 8;
  std::int64_t reply_max = 60;
};

// Two threads wait for each other at every step, which takes long beside a busy process.
constexpr Setting two_threads{"dense_on_two_threads", RandomModelKind::dense, 2, 2, 4, 20};

class Deterministic : public ::testing::TestWithParam<Setting> {
 protected:
  static Rules draw_rules(Random& random) {
    Rules rules;
    rules.model = testing::ModelFolder::instance().random_model(GetParam().kind, 1);
    rules.geometry.layout = Layout::split;
    rules.geometry.n_parallel = static_cast<std::int32_t>(random.between(2, 4));
    rules.geometry.n_ctx = Tokens(512 * rules.geometry.n_parallel);
    rules.engine.n_ubatch = Tokens(random.between(5, 40));
    rules.engine.n_batch = Tokens(64);
    rules.engine.threads = GetParam().threads;
    rules.engine.poll = 0;
    rules.engine.one_sequence_per_ubatch = true;
    rules.scheduler.deterministic = true;
    rules.scheduler.events_max = static_cast<std::size_t>(random.between(2, 20));
    rules.scheduler.preempt.quantum = Tokens(random.between(1, 20));
    rules.scheduler.preempt.rotate_after = Micros(random.between(0, 500));
    rules.scheduler.preempt.every = Tokens(random.chance(70) ? random.between(5, 30) : 0);
    rules.scheduler.bytes_per_token =
        testing::load_test_model(rules.model)->bytes_per_token(KvType::f16, KvType::f16) +
        engine::state_bytes_per_cell;
    if (random.chance(30)) rules.scheduler.preempt_ram.reset();
    if (random.chance(60)) {
      rules.scheduler.preempt_ram = rules.scheduler.bytes_per_token * random.between(0, 400);
    }
    return rules;
  }

  // Half of them go on from an earlier one, so that cells are there to be reused.
  static std::vector<Wish> draw_wishes(Random& random) {
    std::vector<Wish> out;
    for (int i = 0; i < GetParam().requests; ++i) {
      Wish wish{{},
                random.between(1, GetParam().reply_max),
                random.chance(50) ? 0.0F : 1.0F,
                static_cast<std::uint32_t>(random.between(1, 1000))};
      if (!out.empty() && random.chance(50)) {
        wish.prompt = out[static_cast<std::size_t>(random.between(0, i - 1))].prompt;
        if (random.chance(50)) wish.prompt.resize((wish.prompt.size() + 1) / 2);
      }
      const std::int64_t most = random.chance(50) ? 300 : 60;
      const std::int64_t count = std::min<std::int64_t>(
          random.between(1, most), 400 - static_cast<std::int64_t>(wish.prompt.size()));
      for (std::int64_t j = 0; j < count; ++j) {
        wish.prompt.push_back(TokenId{static_cast<std::int32_t>(random.between(100, 1000))});
      }
      out.push_back(std::move(wish));
    }
    return out;
  }
};

TEST_P(Deterministic, EveryReplyIsThatOfTheRequestAloneToTheLastBit) {
  std::uint64_t swaps = 0, recomputes = 0, reused = 0;
  for (std::uint64_t seed = 1; seed <= GetParam().seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Rules rules = draw_rules(random);
    const std::vector<Wish> wishes = draw_wishes(random);
    Server server(rules);
    std::vector<std::unique_ptr<Client>> clients;
    std::size_t done = 0;
    while (done < wishes.size()) {
      if (clients.size() < wishes.size() && random.chance(10)) {
        clients.push_back(server.submit(wishes[clients.size()]));
      }
      server.tick(Micros(random.between(0, 100)));
      done = 0;
      for (const auto& client : clients) {
        if (random.chance(50)) client->read();
        if (client->n_final == 0 && random.between(1, 2000) == 1) client->channel->abandon();
        done += static_cast<std::size_t>(client->n_final);
      }
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
      SCOPED_TRACE("request " + std::to_string(i));
      expect_same(*clients[i], alone(rules, wishes[i]));
      if (HasFatalFailure()) return;
    }
    swaps += server.stats().parks_swap.value();
    recomputes += server.stats().recomputed_tokens.value();
    reused += server.stats().prompt_tokens_cached.value();
  }
  if (GetParam().threads > 1) return;  // Too few requests for all of it.
  const bool has_window = GetParam().kind == RandomModelKind::sliding_window;
  EXPECT_EQ(swaps > 0, !has_window) << "the bytes of a window come back in other places";
  EXPECT_GT(recomputes, 0U);
  EXPECT_TRUE(reused > 0 || GetParam().kind != RandomModelKind::dense);
}

INSTANTIATE_TEST_SUITE_P(Memories, Deterministic,
                         ::testing::Values(Setting{"dense", RandomModelKind::dense}, two_threads,
                                           Setting{"sliding_window",
                                                   RandomModelKind::sliding_window},
                                           Setting{"recurrent", RandomModelKind::recurrent},
                                           Setting{"hybrid", RandomModelKind::hybrid}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fermata
