// What clients write as prompts, and the parts of an infill.
#include "api/prompts.h"

#include "api/infill.h"
#include "api/response_fields.h"
#include "engine/fake/fake_vocabulary.h"

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

std::vector<TokenId> ids(std::initializer_list<int> values) {
  std::vector<TokenId> out;
  for (const int value : values) out.push_back(TokenId{value});
  return out;
}

using Prompts = std::vector<std::vector<TokenId>>;

std::vector<TokenId> row(int first, int count) {
  std::vector<TokenId> out;
  for (int i = 0; i < count; ++i) out.push_back(TokenId{first + i});
  return out;
}

std::vector<std::vector<TokenId>> read(const char* text) {
  const auto vocabulary = engine::fake::make_vocabulary();
  return read_prompts(Json::parse(text), *vocabulary);
}

std::string refusal_of(const char* text) {
  try {
    (void)read(text);
  } catch (const ApiError& error) {
    return error.message;
  }
  return "";
}

TEST(Prompts, AListWithATokenIsOne) {
  EXPECT_EQ(read(R"("ab")"), (Prompts{ids({97, 98})}));
  EXPECT_EQ(read("[1, 2]"), (Prompts{ids({1, 2})}));
  EXPECT_EQ(read(R"(["a", 2])"), (Prompts{ids({97, 2})}));
  EXPECT_EQ(read(R"(["a", "b"])"), (Prompts{ids({97}), ids({98})}));
  EXPECT_EQ(read(R"([[1], ["a", 2], "b", {"prompt_string": "c"}])"),
            (Prompts{ids({1}), ids({97, 2}), ids({98}), ids({99})}));
}

// G4: a prompt without tokens was queued, and hung.
TEST(Prompts, WithoutABeginOfTextAnEmptyOneIsRefused) {
  for (const char* empty : {R"("")", "[]", R"([""])", "[[]]", R"(["a", ""])"}) {
    EXPECT_EQ(refusal_of(empty), "prompt: is empty") << empty;
  }
}

TEST(Prompts, MistakesAreNamed) {
  for (const char* bad : {"5", "null", "true", "[1.5]", R"(["a", null])", "[[[1]]]", "[-1]",
                          "[99999999]", "[18446744073709551615]", R"({"prompt_string": 5})"}) {
    EXPECT_TRUE(refusal_of(bad).starts_with("prompt")) << bad;
  }
}

engine::SpecialTokens marks() {
  engine::SpecialTokens out;
  out.bos = TokenId{1};
  out.fim_prefix = TokenId{2};
  out.fim_suffix = TokenId{3};
  out.fim_middle = TokenId{4};
  return out;
}

TEST(Infill, PartsStandInOrder) {
  const InfillParts parts{ids({10, 11}), ids({20, 21}), ids({30}), ids({40, 41})};
  const InfillLimits limits{.batch = Tokens(100), .extra = Tokens(100)};
  EXPECT_EQ(infill_prompt(marks(), parts, limits), ids({40, 41, 2, 10, 11, 30, 3, 20, 21, 4}));
  InfillLimits suffix_first = limits;
  suffix_first.suffix_first = true;
  engine::SpecialTokens with_bos = marks();
  with_bos.adds_bos = true;
  EXPECT_EQ(infill_prompt(with_bos, parts, suffix_first),
            ids({40, 41, 1, 3, 20, 21, 2, 10, 11, 30, 4}));
}

TEST(Infill, KeepsWhatIsNearTheGap) {
  const InfillParts parts{row(100, 50), row(200, 50), ids({7}), row(300, 50)};
  const InfillLimits limits{.batch = Tokens(16), .extra = Tokens(3)};
  // Twelve of the prefix; four less the marks and the prompt of the suffix.
  EXPECT_EQ(infill_prompt(marks(), parts, limits),
            ids({347, 348, 349, 2,   138, 139, 140, 141, 142, 143,
                 144, 145, 146, 147, 148, 149, 7,   3,   200, 4}));
  EXPECT_EQ(infill_prompt(marks(), parts, {}), ids({2, 7, 3, 4}));
}

TEST(ResponseFields, PathsThatLeadNowhereAreLeftOut) {
  const Json reply = Json::parse(R"({"a": 1, "b": {"c": {"d": 2}}, "e": [3], "": 4})");
  EXPECT_EQ(pick(reply, {"b/c/d", "a", "e", "e/0", "x", "a/b", "b/"}).dump(),
            R"({"b/c/d":2,"a":1,"e":[3]})");
  EXPECT_EQ(pick(reply, {""}).dump(), R"({"":4})");
}

}  // namespace
}  // namespace fermata::api
