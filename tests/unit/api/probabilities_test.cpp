// Which tokens of a reply have probabilities, when they are given, and how they are worded.
#include "api/probabilities.h"

#include "core/stop_scanner.h"
#include "engine/fake/fake_vocabulary.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

using Texts = std::vector<std::string>;

class ProbabilitiesTest : public testing::Test {
 protected:
  // Feeds each byte of `text` as a token; the token texts given after each byte, and at the end.
  std::vector<Texts> run(std::string_view text, std::vector<std::string> stop,
                         FinishReason reason) {
    Probabilities probabilities(*vocabulary_, {.wanted = true, .top = 1});
    StopScanner scanner(std::move(stop));
    std::vector<Texts> out;
    bool word = false;
    for (const char c : text) {
      const TokenId token{static_cast<unsigned char>(c)};
      TokenEvent event{token, Seat(0), "", -1.0F, {{token, -1.0F}}};
      word = scanner.feed(vocabulary_->piece(token), event.text);
      probabilities.add(event);
      out.push_back(texts(probabilities.take()));
      if (word) break;
    }
    FinalEvent final;
    final.text = word ? "" : scanner.flush();
    final.reason = scanner.stop_word().empty() ? reason : FinishReason::word;
    final.is_cut = final.reason == FinishReason::word;
    probabilities.end(final);
    out.push_back(texts(probabilities.take()));
    return out;
  }

  static Texts texts(const std::string& json) {
    Texts out;
    if (json.empty()) return out;
    for (const Json& entry : Json::parse(json)) {
      std::string bytes;
      for (const Json& byte : entry["bytes"]) bytes += static_cast<char>(byte.get<int>());
      out.push_back(bytes);
    }
    return out;
  }

  std::unique_ptr<engine::Vocabulary> vocabulary_ = engine::fake::make_vocabulary();
};

TEST_F(ProbabilitiesTest, GivenWithTheTextTheyBelongTo) {
  EXPECT_EQ(run("ab", {}, FinishReason::limit), (std::vector<Texts>{{"a"}, {"b"}, {}}));
  EXPECT_EQ(run("axyb", {"xyz"}, FinishReason::limit),
            (std::vector<Texts>{{"a"}, {}, {}, {"x", "y", "b"}, {}}));
  EXPECT_EQ(run("axy", {"xyz"}, FinishReason::eos),
            (std::vector<Texts>{{"a"}, {}, {}, {"x", "y"}}));
}

TEST_F(ProbabilitiesTest, WhatAStopWordCutsOffHasNone) {
  EXPECT_EQ(run("axyz", {"xyz"}, FinishReason::limit), (std::vector<Texts>{{"a"}, {}, {}, {}, {}}));
  // "bc" was complete while "abcd" could still come true: the end decides.
  EXPECT_EQ(run("abc", {"abcd", "bc"}, FinishReason::eos), (std::vector<Texts>{{}, {}, {}, {"a"}}));
}

TEST_F(ProbabilitiesTest, TokensWithoutTextKeepTheirPlace) {
  Probabilities probabilities(*vocabulary_, {.wanted = true});
  const auto add = [&](TokenId token, const char* text) {
    probabilities.add({token, Seat(0), text, -1.0F, {}});
    const std::string json = probabilities.take();
    std::vector<int> ids;
    if (json.empty()) return ids;
    for (const Json& entry : Json::parse(json)) ids.push_back(entry["id"]);
    return ids;
  };
  const int control = raw(engine::fake::turn_begin_token);
  EXPECT_EQ(add(engine::fake::turn_begin_token, ""), std::vector<int>{control});
  EXPECT_EQ(add(TokenId{'a'}, ""), std::vector<int>{}) << "held back";
  EXPECT_EQ(add(engine::fake::turn_begin_token, ""), std::vector<int>{}) << "behind it";
  EXPECT_EQ(add(TokenId{'b'}, "ab"), (std::vector<int>{'a', control, 'b'}));
}

TEST_F(ProbabilitiesTest, WordedLikeLlamaServer) {
  const TokenEvent event{
      TokenId{'"'}, Seat(0), "\"", -0.5F, {{TokenId{'"'}, -0.5F}, {TokenId{0xF0}, -2}}};
  Probabilities plain(*vocabulary_, {.wanted = true, .top = 2});
  plain.add(event);
  EXPECT_EQ(plain.take(), R"([{"id":34,"token":"\"","bytes":[34],"logprob":-0.5,"top_logprobs":[)"
                          R"({"id":34,"token":"\"","bytes":[34],"logprob":-0.5},)"
                          R"({"id":240,"token":"","bytes":[240],"logprob":-2.0}]}])");
  EXPECT_EQ(plain.take(), "");

  Probabilities after(*vocabulary_, {.wanted = true, .top = 1, .post_sampling = true});
  after.add({TokenId{0xA9}, Seat(0), "\xA9", 0.25F, {{TokenId{'a'}, 0.75F}, {TokenId{'b'}, 0.0F}}});
  EXPECT_EQ(after.take(),
            "[{\"id\":169,\"token\":\"\xEF\xBF\xBD\",\"bytes\":[169],\"prob\":0.25,"
            "\"top_probs\":[{\"id\":97,\"token\":\"a\",\"bytes\":[97],"
            "\"prob\":0.75}]}]");
}

TEST_F(ProbabilitiesTest, NothingWhenNobodyAsked) {
  Probabilities probabilities(*vocabulary_, {});
  probabilities.add({TokenId{'a'}, Seat(0), "a", 0.0F, {}});
  probabilities.end({});
  EXPECT_EQ(probabilities.take(), "");
}

ProbabilityOptions read(const char* body, bool chat, SamplingParams sampling = {}) {
  const Json json = parse_object(body);
  const Fields fields(json);
  const ProbabilityOptions out = chat ? read_chat_probabilities(fields, sampling)
                                      : read_completion_probabilities(fields, sampling);
  EXPECT_EQ(out.wanted, sampling.n_probs > 0);
  EXPECT_LE(out.top, sampling.n_probs);
  return out;
}

TEST(ProbabilityOptions, OfCompletions) {
  EXPECT_FALSE(read("{}", false).wanted);
  EXPECT_FALSE(read(R"({"logprobs": 0})", false).wanted);
  EXPECT_FALSE(read(R"({"logprobs": false})", false).wanted);
  EXPECT_EQ(read(R"({"logprobs": 7})", false).top, 7);
  EXPECT_EQ(read(R"({"logprobs": true})", false).top, 1);
  SamplingParams sampling;
  sampling.n_probs = 3;
  EXPECT_EQ(read(R"({"logprobs": 7})", false, sampling).top, 3) << "the native name wins";
  EXPECT_THROW(read(R"({"logprobs": 1001})", false), ApiError);
  EXPECT_THROW(read(R"({"logprobs": -1})", false), ApiError);
}

TEST(ProbabilityOptions, OfChats) {
  EXPECT_FALSE(read("{}", true).wanted);
  EXPECT_FALSE(read(R"({"logprobs": false, "top_logprobs": 0})", true).wanted);
  EXPECT_EQ(read(R"({"logprobs": true})", true).top, 20);
  EXPECT_EQ(read(R"({"logprobs": true, "top_logprobs": 5})", true).top, 5);
  const ProbabilityOptions own = read(R"({"logprobs": true, "top_logprobs": 0})", true);
  EXPECT_TRUE(own.wanted);
  EXPECT_EQ(own.top, 0);
  SamplingParams sampling;
  sampling.n_probs = 3;
  EXPECT_EQ(read("{}", true, sampling).top, 3);
  for (const char* body : {R"({"top_logprobs": 1})", R"({"logprobs": true, "top_logprobs": 21})",
                           R"({"logprobs": true, "top_logprobs": -1})", R"({"logprobs": 3})"}) {
    EXPECT_THROW(read(body, true), ApiError) << body;
  }
}

}  // namespace
}  // namespace fermata::api
