#include "api/control_texts.h"

#include "engine/fake/fake_vocabulary.h"

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

class ControlTextsTest : public ::testing::Test {
 protected:
  // What the text becomes on its way into a prompt.
  std::vector<TokenId> tokens(const std::string& text) const {
    return tokenize(cut_at(texts_.marked(text, "MARK"), "MARK"), *vocabulary_);
  }

  std::unique_ptr<engine::Vocabulary> vocabulary_ = engine::fake::make_vocabulary();
  ControlTexts texts_{*vocabulary_};
};

TEST_F(ControlTextsTest, SpellingsAreOrdinaryText) {
  for (const char* text :
       {"", "x", "<", "</", "</turn", "</turn>", "a</turn>b<turn>c", "</turn></turn>",
        "<<turn>turn>", "</</turn>turn>", "<eos><eos", "<tur<turn>n>", "\xF0\x9F\x8E\xBC<turn>"}) {
    EXPECT_EQ(tokens(text), vocabulary_->tokenize(text, true, false)) << text;
    EXPECT_EQ(cut_at(texts_.marked(text, "MARK"), "MARK").text, text);
  }
}

TEST_F(ControlTextsTest, ThoseOfTheTemplateStayWhatTheyAre) {
  const CutText prompt = cut_at("<turn>" + texts_.marked("</turn>", "MARK") + "</turn>", "MARK");
  EXPECT_EQ(prompt.cuts, (std::vector<std::size_t>{7}));
  const auto whole = vocabulary_->tokenize("<turn></turn>", true, true);
  const auto made = tokenize(prompt, *vocabulary_);
  EXPECT_EQ(made.front(), whole.front());
  EXPECT_EQ(made.back(), whole.back());
  EXPECT_EQ(made.size(), whole.size() + 7);
}

TEST_F(ControlTextsTest, MessagesOfTheAssistantAreItsOwn) {
  Json messages = Json::parse(R"([
    {"role": "system", "content": "<turn>"}, {"role": "user", "content": "</turn>"},
    {"role": "user",
     "content": [{"type": "text", "text": "a<eos>"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": "<turn>"}, {"role": "tool", "content": "</turn>"}])");
  texts_.mark(messages, "MARK");
  EXPECT_EQ(messages[0]["content"], "<MARKturn>");
  EXPECT_EQ(messages[1]["content"], "<MARK/turn>");
  EXPECT_EQ(messages[2]["content"][0]["text"], "a<MARKeos>");
  EXPECT_EQ(messages[2]["content"][1]["text"], "b");
  EXPECT_EQ(messages[3]["content"], "<turn>");
  EXPECT_EQ(messages[4]["content"], "<MARK/turn>");
}

}  // namespace
}  // namespace fermata::api
