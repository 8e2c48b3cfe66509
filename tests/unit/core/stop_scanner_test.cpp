#include "core/stop_scanner.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata {
namespace {

struct Shown {
  std::string text;                  // Released, then flushed.
  std::vector<std::string> in_turn;  // What each piece released.
  std::string word;
};

Shown show(const std::vector<std::string>& words, const std::vector<std::string>& pieces) {
  StopScanner scanner(words);
  Shown out;
  for (const std::string& piece : pieces) {
    std::string released = "from an earlier piece";
    const bool ended = scanner.feed(piece, released);
    out.text += released;
    out.in_turn.push_back(released);
    if (ended) break;
  }
  out.text += scanner.flush();
  out.word = scanner.stop_word();
  return out;
}

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> out;
  for (char c : text) out.emplace_back(1, c);
  return out;
}

// What a reader of the whole reply would call the end.
std::size_t first_match(const std::string& text, const std::vector<std::string>& words) {
  std::size_t best = std::string::npos;
  for (const std::string& word : words) best = std::min(best, text.find(word));
  return best;
}

struct Case {
  std::vector<std::string> words;
  std::string text;
  std::string word;
};

// The reply of all of them is "The sky is blue?\nNext".
class StopWords : public ::testing::TestWithParam<Case> {};

TEST_P(StopWords, EndTheReplyAtOnePlaceHoweverItIsCut) {
  const std::string reply = "The sky is blue?\nNext";
  const Shown whole = show(GetParam().words, {reply});
  EXPECT_EQ(whole.text, GetParam().text);
  EXPECT_EQ(whole.word, GetParam().word);

  const Shown single = show(GetParam().words, bytes_of(reply));
  EXPECT_EQ(single.text, GetParam().text);
  EXPECT_EQ(single.word, GetParam().word);

  for (std::size_t cut = 1; cut < reply.size(); ++cut) {
    const Shown halves = show(GetParam().words, {reply.substr(0, cut), reply.substr(cut)});
    EXPECT_EQ(halves.text, GetParam().text) << "cut at " << cut;
    EXPECT_EQ(halves.word, GetParam().word) << "cut at " << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Field, StopWords,
    ::testing::Values(
        Case{{"\n"}, "The sky is blue?", "\n"}, Case{{"?\n"}, "The sky is blue", "?\n"},
        Case{{"blue"}, "The sky is ", "blue"}, Case{{"e?\nN"}, "The sky is blu", "e?\nN"},
        Case{{"zzz"}, "The sky is blue?\nNext", ""},
        // Only begun when the reply ends: nothing of it is lost.
        Case{{"Next and more"}, "The sky is blue?\nNext", ""},
        // The first character, the last ones, everything.
        Case{{"T"}, "", "T"}, Case{{"xt"}, "The sky is blue?\nNe", "xt"},
        Case{{"The sky is blue?\nNext"}, "", "The sky is blue?\nNext"},
        Case{{"sky is", "ky is", "is blue", "blue?", "y is b"}, "The ", "sky is"},
        Case{{"is", "sky is blue", "blue"}, "The ", "sky is blue"},
        // The longer word breaks off, the shorter inside it was met long before.
        Case{{"is", "sky is green"}, "The sky ", "is"}, Case{{}, "The sky is blue?\nNext", ""}));

TEST(StopScanner, ReleasesTextAtOnceWhenNoWordCanBegin) {
  EXPECT_EQ(show({"stop"}, {"abc", "def"}).in_turn, (std::vector<std::string>{"abc", "def"}));
  EXPECT_EQ(show({}, {"abc", ""}).in_turn, (std::vector<std::string>{"abc", ""}));
}

TEST(StopScanner, HoldsBackOnlyTheBeginningOfAWord) {
  EXPECT_EQ(show({"stop"}, {"as", "t", "o", "x", "st"}).in_turn,
            (std::vector<std::string>{"a", "", "", "stox", ""}));
}

TEST(StopScanner, WordMayStraddleManyPieces) {
  const Shown shown = show({"stop"}, {"one s", "to", "", "p two"});
  EXPECT_EQ(shown.text, "one ");
  EXPECT_EQ(shown.word, "stop");
}

TEST(StopScanner, WordThatOverlapsItsOwnBeginningIsFound) {
  EXPECT_EQ(show({"aab"}, {"a", "a", "a", "b"}).text, "a");
  EXPECT_EQ(show({"abab"}, {"aba", "abab"}).text, "aba");
}

TEST(StopScanner, LongestOfSeveralAtOnePlaceIsNamed) {
  EXPECT_EQ(show({"\n", "\n\n", "\n\nUser"}, {"a\n\nUser: b"}).word, "\n\nUser");
  EXPECT_EQ(show({"\n\n", "\n"}, {"a\n\n"}).word, "\n\n");
}

// A reply that ended with "\n" would otherwise cost one more step to see whether "\n\n" follows.
TEST(StopScanner, DoesNotWaitForALongerWordAtTheSamePlace) {
  StopScanner scanner({"\n", "\n\n"});
  std::string released;
  EXPECT_TRUE(scanner.feed("a\n", released));
  EXPECT_EQ(released, "a");
  EXPECT_EQ(scanner.stop_word(), "\n");
}

TEST(StopScanner, CompleteWordThatWaitedIsMetWhenTheReplyEnds) {
  StopScanner scanner({"bc", "abcd"});
  std::string released;
  EXPECT_FALSE(scanner.feed("xabc", released));
  EXPECT_EQ(released, "x");
  EXPECT_EQ(scanner.stop_word(), "");
  EXPECT_EQ(scanner.flush(), "a");
  EXPECT_EQ(scanner.stop_word(), "bc");
}

TEST(StopScanner, WordOfSeveralBytesPerCharacterMayBeCutAnywhere) {
  const std::string emoji = "\xF0\x9F\x9B\x91";
  for (std::size_t cut = 0; cut <= emoji.size(); ++cut) {
    const Shown shown = show({emoji}, {"halt " + emoji.substr(0, cut), emoji.substr(cut) + "!"});
    EXPECT_EQ(shown.text, "halt ");
  }
  // The same lead bytes, another character.
  EXPECT_EQ(show({emoji}, {"\xF0\x9F", "\x9B\x92"}).text, "\xF0\x9F\x9B\x92");
}

TEST(StopScanner, BytesOfZeroAreBytes) {
  const std::string zero(1, '\0');
  const Shown shown = show({"a" + zero + "b"}, {"xa" + zero, "by"});
  EXPECT_EQ(shown.text, "x");
}

TEST(StopScanner, FlushGivesWhatWasHeldOnce) {
  StopScanner scanner({"stop"});
  std::string released;
  EXPECT_FALSE(scanner.feed("sto", released));
  EXPECT_EQ(scanner.flush(), "sto");
  EXPECT_EQ(scanner.flush(), "");
}

TEST(StopScannerDeathTest, BrokenPromisesEndTheProcess) {
  EXPECT_DEATH(StopScanner({"a", ""}), "an empty stop word");
  StopScanner scanner({"a"});
  std::string released;
  ASSERT_TRUE(scanner.feed("a", released));
  EXPECT_DEATH((void)scanner.feed("b", released), "fed after the end");
}

// In [low, high), as likely large as small from the first case on.
std::size_t draw(std::size_t low, std::size_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

// Two letters and short words, so that words meet, overlap and nest all the time.
std::string some_text(std::size_t least, std::size_t most) {
  return *rc::gen::container<std::string>(draw(least, most + 1), rc::gen::element('a', 'b'));
}

std::vector<std::string> some_words() {
  std::vector<std::string> words;
  const std::size_t n = draw(0, 4);
  for (std::size_t i = 0; i < n; ++i) {
    words.push_back(some_text(1, 7));
    const std::string& word = words.back();
    if (draw(0, 2) == 0) words.push_back(word.substr(draw(0, word.size()), draw(1, 5)));
  }
  return words;
}

std::vector<std::string> some_pieces(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = draw(1, 7);
    pieces.push_back(text.substr(at, n));
    at += n;
    if (draw(0, 4) == 0) pieces.emplace_back();
  }
  return pieces;
}

void check_text() {
  const std::vector<std::string> words = some_words();
  const std::string text = some_text(0, 40);
  const Shown shown = show(words, some_pieces(text));
  const std::size_t end = first_match(text, words);
  RC_ASSERT(shown.text == text.substr(0, end));
  RC_ASSERT(shown.word.empty() == (end == std::string::npos));
  if (shown.word.empty()) return;
  // The word that is named is one that stands there.
  RC_ASSERT(text.compare(end, shown.word.size(), shown.word) == 0);
  RC_ASSERT(std::find(words.begin(), words.end(), shown.word) != words.end());
}

void check_release() {
  const std::vector<std::string> words = some_words();
  const std::vector<std::string> pieces = some_pieces(some_text(0, 40));
  StopScanner scanner(words);
  std::string fed, shown, released;
  for (const std::string& piece : pieces) {
    fed += piece;
    const bool ended = scanner.feed(piece, released);
    shown += released;
    if (ended) break;
    // Whatever continues the text, the part shown is before the first match...
    std::size_t safe = std::min(first_match(fed, words), fed.size());
    for (const std::string& word : words) {
      for (std::size_t at = 0; at < safe; ++at) {
        if (word.starts_with(std::string_view(fed).substr(at))) safe = at;
      }
    }
    RC_ASSERT(shown.size() <= safe);
    // ... and nothing that is safe is kept from the reader.
    RC_ASSERT(shown.size() == safe);
  }
}

RC_GTEST_PROP(StopScannerProperty, TextIsWhatComesBeforeTheFirstMatchOfTheWhole, ()) {
  for (int i = 0; i < 10; ++i) check_text();
}
RC_GTEST_PROP(StopScannerProperty, NothingIsReleasedThatMayStillBecomeAWord, ()) {
  for (int i = 0; i < 10; ++i) check_release();
}

}  // namespace
}  // namespace fermata
