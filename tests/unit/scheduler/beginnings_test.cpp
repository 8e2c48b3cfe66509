// Sixteen agents that came at once with one system prompt had it computed several times: whoever
// begins like a prompt that is being computed waits for it.
#include "sim/rig.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

using sim::Ask;
using sim::Client;
using sim::Rig;
using sim::RigSpec;
using sim::solo_run;

constexpr std::size_t agents = 4;
constexpr std::uint64_t common = 130, own = 5;

RigSpec roomy(Layout layout = Layout::pooled) {
  RigSpec spec;
  spec.geometry = {.n_ctx = Tokens(4096), .n_parallel = 4, .layout = layout};
  return spec;
}

Ask ask_of(std::size_t agent, std::uint64_t shared = common) {
  return {.prompt = std::string(shared, 's') + std::string(own, static_cast<char>('a' + agent))};
}

std::vector<std::unique_ptr<Client>> play(Rig& rig, bool cache_prompt, std::uint64_t shared) {
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Client*> readers;
  for (std::size_t i = 0; i < agents; ++i) {
    Ask ask = ask_of(i, shared);
    ask.cache_prompt = cache_prompt;
    clients.push_back(rig.submit(ask));
    readers.push_back(clients.back().get());
  }
  rig.run(readers);
  for (std::size_t i = 0; i < agents; ++i) {
    EXPECT_EQ(clients[i]->text, solo_run({}, ask_of(i, shared)).text);
  }
  return clients;
}

TEST(Beginnings, OfAgentsThatComeAtOnceAreComputedOnce) {
  Rig rig{roomy()};
  const auto clients = play(rig, true, common);
  EXPECT_EQ(rig.scheduler().stats().prompt_tokens.value(), common + agents * own);
  EXPECT_EQ(clients[3]->final->timings.prompt_cached, Tokens(common));
}

TEST(Beginnings, ThatAreShortOrNotToBeSharedAreComputedByEach) {
  for (const bool cache_prompt : {true, false}) {
    const std::uint64_t shared = cache_prompt ? 40 : common;
    Rig rig{roomy()};
    play(rig, cache_prompt, shared);
    EXPECT_EQ(rig.scheduler().stats().prompt_tokens.value(), agents * (shared + own));
  }
  Rig split{roomy(Layout::split)};
  play(split, true, common);
  EXPECT_EQ(split.scheduler().stats().prompt_tokens.value(), agents * (common + own));
}

TEST(Beginnings, NobodyWaitsForOneThatDoesNotGoOn) {
  Rig rig{roomy()};
  const auto first = rig.submit(Ask{.prompt = ask_of(0).prompt, .max_tokens = 200});
  ASSERT_TRUE(rig.tick());
  const auto held = rig.hold(scheduler::HoldAction::park, first->id);
  const auto second = rig.submit(ask_of(1));
  rig.run({second.get()});
  ASSERT_EQ(second->n_final, 1);
  EXPECT_EQ(second->text, solo_run({}, ask_of(1)).text);
}

}  // namespace
}  // namespace fermata
