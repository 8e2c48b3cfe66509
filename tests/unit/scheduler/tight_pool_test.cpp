// Requests that fit only because cells are shared. Each of these ended the process once: the check
// of the plan, or the plan itself, counted what is shared wrongly.
#include "sim/rig.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

using sim::Ask;
using sim::Client;
using sim::Rig;
using sim::RigSpec;
using sim::solo_run;

// All in one tick, on what earlier requests have left.
void expect_solo_texts(Rig& rig, const std::vector<Ask>& asks) {
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Client*> readers;
  for (const Ask& ask : asks) {
    clients.push_back(rig.submit(ask));
    readers.push_back(clients.back().get());
  }
  rig.run(readers);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    ASSERT_EQ(clients[i]->n_final, 1);
    EXPECT_EQ(clients[i]->text, solo_run({}, asks[i]).text);
  }
}

void finish(Rig& rig, const Ask& ask) {
  const auto client = rig.submit(ask);
  rig.run({client.get()});
}

TEST(TightPool, SeveralShareTheBeginningOfAnIdleConversation) {
  Rig rig({});  // 256 cells, 4 seats
  const std::string common(100, 's');
  finish(rig, {.prompt = common + std::string(100, 'a'), .max_tokens = 1});
  expect_solo_texts(rig, {{.prompt = common + "one", .max_tokens = 8},
                          {.prompt = common + "two", .max_tokens = 8},
                          {.prompt = common + "six", .max_tokens = 8}});
}

TEST(TightPool, GoesOnFromAnIdleSeatBesideABusyOneWithTheSameCells) {
  RigSpec spec;
  spec.scheduler.events_max = 4;  // Unread, the busy one stays where it is.
  Rig rig(spec);
  const std::string common(100, 's');
  const auto busy = rig.submit({.prompt = common + "a", .max_tokens = 60});
  while (busy->tokens.empty()) {
    rig.tick();
    busy->read();
  }
  finish(rig, {.prompt = common + "b", .max_tokens = 1});
  const Ask next{.prompt = common + "b and on", .max_tokens = 40};
  const auto client = rig.submit(next);
  rig.tick();
  EXPECT_EQ(rig.scheduler().status().read().n_processing, 2);
  rig.run({busy.get(), client.get()});
  EXPECT_EQ(client->final->timings.prompt_cached, Tokens(101));
  EXPECT_EQ(client->text, solo_run({}, next).text);
}

TEST(TightPool, PinnedRequestWhoseSeatWasEvictedInTheSameTick) {
  Rig rig({});
  const std::string old(200, 'p');
  finish(rig, {.prompt = old, .max_tokens = 1, .seat = Seat(2)});
  expect_solo_texts(rig, {{.prompt = std::string(150, 'q'), .max_tokens = 4},
                          {.prompt = old.substr(0, 50) + "x", .max_tokens = 4, .seat = Seat(2)}});
}

}  // namespace
}  // namespace fermata
