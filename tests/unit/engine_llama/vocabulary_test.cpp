// Text to tokens and back, on a model without weights.
#include "engine/vocabulary.h"

#include "base/random.h"
#include "support/llama_models.h"

#include <atomic>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::engine::llama {
namespace {

using fermata::testing::tiny_vocabulary;

const std::vector<std::string> texts = {
    "",
    "Hello",
    " leading and trailing ",
    "Count from 1 to 95.",
    "line\nline\r\n\ttab",
    "é Ελλάδα Привет 你好 🎵",
    "<|im_start|>user\nhi<|im_end|>",
    std::string(3000, 'a'),
};

TEST(Vocabulary, TextComesBackFromItsTokens) {
  const auto vocabulary = tiny_vocabulary();
  for (const std::string& text : texts) {
    for (const bool special : {false, true}) {
      EXPECT_EQ(vocabulary->detokenize(vocabulary->tokenize(text, false, special)), text);
    }
  }
}

TEST(Vocabulary, ControlTokensAreReadOnlyWhereAsked) {
  const auto vocabulary = tiny_vocabulary();
  const std::string text = "<|im_end|>";
  const auto as_control = vocabulary->tokenize(text, false, true);
  ASSERT_EQ(as_control.size(), 1U);
  EXPECT_TRUE(vocabulary->ends_generation(as_control[0]));
  EXPECT_EQ(vocabulary->piece(as_control[0]), "");
  EXPECT_EQ(vocabulary->piece_with_special(as_control[0]), text);
  const auto as_text = vocabulary->tokenize(text, false, false);
  EXPECT_GT(as_text.size(), 1U);
  for (const TokenId token : as_text) EXPECT_FALSE(vocabulary->ends_generation(token));
}

TEST(Vocabulary, EveryTokenHasItsPiece) {
  const auto vocabulary = tiny_vocabulary();
  ASSERT_EQ(vocabulary->size(), 1280);
  std::set<std::string_view> distinct;
  int control = 0;
  for (std::int32_t i = 0; i < vocabulary->size(); ++i) {
    const std::string_view spelled = vocabulary->piece_with_special(TokenId{i});
    const std::string_view piece = vocabulary->piece(TokenId{i});
    if (piece.empty()) {
      ++control;
    } else {
      EXPECT_EQ(piece, spelled);
      EXPECT_TRUE(distinct.insert(piece).second) << i;
    }
  }
  EXPECT_GE(control, 3);
}

TEST(Vocabulary, SpecialTokensAreWhatTheModelSays) {
  const auto vocabulary = tiny_vocabulary();
  const SpecialTokens& special = vocabulary->special();
  ASSERT_TRUE(special.eos.has_value());
  EXPECT_TRUE(vocabulary->ends_generation(*special.eos));
  EXPECT_FALSE(special.sep.has_value());
  const auto with = vocabulary->tokenize("hi", true, false);
  const auto without = vocabulary->tokenize("hi", false, false);
  EXPECT_EQ(with.size(), without.size() + (special.adds_bos ? 1 : 0));
}

TEST(Vocabulary, ThreadsTokenizeAtOnce) {
  const auto vocabulary = tiny_vocabulary();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        for (const std::string& text : texts) {
          if (vocabulary->detokenize(vocabulary->tokenize(text, false, true)) != text) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Vocabulary, AFileThatIsNoModelIsRefusedInOneLine) {
  tiny_vocabulary();
  const auto& folder = fermata::testing::ModelFolder::instance();
  std::ofstream(folder.file("text.gguf")) << "not a model";
  std::ofstream(folder.file("head.gguf"), std::ios::binary) << "GGUF\3\0\0\0";
  std::filesystem::create_directory(folder.file("folder.gguf"));
  std::string whole(200000, '\0');
  std::ifstream(fermata::testing::tiny_model_path(), std::ios::binary)
      .read(whole.data(), static_cast<std::streamsize>(whole.size()));
  std::ofstream(folder.file("cut.gguf"), std::ios::binary) << whole.substr(0, 20000);
  for (const std::string name :
       {"absent.gguf", "text.gguf", "head.gguf", "folder.gguf", "cut.gguf"}) {
    const auto vocabulary = load_vocabulary(folder.file(name));
    ASSERT_FALSE(vocabulary.ok()) << name;
    EXPECT_NE(vocabulary.error().message.find(name), std::string::npos);
    EXPECT_EQ(vocabulary.error().message.find('\n'), std::string::npos);
    const auto model = load_model(folder.file(name));
    ASSERT_FALSE(model.ok()) << name;
    EXPECT_NE(model.error().message.find(name), std::string::npos);
    EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace fermata::engine::llama
