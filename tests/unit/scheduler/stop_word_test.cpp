// Stop words as a client sees them. The fake's tokens are single bytes, so every word arrives in
// pieces.
#include "sim/rig.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

using sim::Client;
using sim::Rig;

Client forced(const std::string& reply, const std::vector<std::string>& stop,
              std::int64_t max_tokens = 100) {
  Rig rig({});
  const auto client = rig.submit({.prompt = "say it",
                                  .max_tokens = max_tokens,
                                  .stop = stop,
                                  .grammar = "root ::= \"" + reply + "\""});
  rig.run({client.get()});
  return *client;
}

TEST(StopWord, EndsTheReplyBeforeItAndIsNamed) {
  for (const std::string word : {"T", "blue", "y is b", "e?\nN", "\n", "xt"}) {
    const std::string whole = "The sky is blue?\nNext";
    const Client client = forced("The sky is blue?\\nNext", {"zzz", word});
    EXPECT_EQ(client.text, whole.substr(0, whole.find(word)));
    EXPECT_EQ(client.final->reason, FinishReason::word);
    EXPECT_EQ(client.final->stop_word, word);
  }
}

TEST(StopWord, BeginningOfOneIsGivenBackAtTheEnd) {
  const Client ended = forced("The end", {"end of it"});
  EXPECT_EQ(ended.text, "The end");
  EXPECT_EQ(ended.final->reason, FinishReason::eos);
  EXPECT_EQ(ended.final->stop_word, "");
  const Client limited = forced("The end of all", {"end of it"}, 8);
  EXPECT_EQ(limited.text, "The end ");
  EXPECT_EQ(limited.final->reason, FinishReason::limit);
}

TEST(StopWord, OneThatBeginsEarlierWins) {
  const Client client = forced("The sky is blue today", {"is", "sky is blue"});
  EXPECT_EQ(client.text, "The ");
  EXPECT_EQ(client.final->stop_word, "sky is blue");
}

TEST(StopWord, OneThatWaitedForALongerEndsTheReplyAllTheSame) {
  const std::vector<std::string> stop{"is", "sky is blue"};
  for (const Client& client : {forced("The sky is green", stop),        // The longer breaks off,
                               forced("The sky is", stop),              // the model ends,
                               forced("The sky is blue", stop, 12)}) {  // the limit comes first.
    EXPECT_EQ(client.text, "The sky ");
    EXPECT_EQ(client.final->reason, FinishReason::word);
    EXPECT_EQ(client.final->stop_word, "is");
  }
}

}  // namespace
}  // namespace fermata
