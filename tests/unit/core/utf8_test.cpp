#include "core/utf8.h"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fermata {
namespace {

const std::string bad = "\xEF\xBF\xBD";  // U+FFFD

// The encoding of any number up to 0x1FFFFF, legal or not, in `length` bytes.
std::string encode(std::uint32_t code, int length) {
  static constexpr unsigned char leads[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
  std::string out(static_cast<std::size_t>(length), ' ');
  for (int i = length - 1; i > 0; --i) {
    out[static_cast<std::size_t>(i)] = static_cast<char>(0x80 | (code & 0x3F));
    code >>= 6;
  }
  out[0] = static_cast<char>(leads[length] | code);
  return out;
}

int shortest_length(std::uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

bool is_character(std::uint32_t code) {
  return code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

TEST(Utf8, ExactlyTheCharactersInTheirShortestFormAreValid) {
  for (std::uint32_t code = 0; code < 0x200000; ++code) {
    for (int length = shortest_length(code); length <= 4; ++length) {
      const bool right = is_character(code) && length == shortest_length(code);
      ASSERT_EQ(is_valid_utf8(encode(code, length)), right) << std::hex << code << ' ' << length;
    }
  }
}

TEST(Utf8, BytesThatBeginNothingAreInvalid) {
  for (int byte = 0x80; byte <= 0xFF; ++byte) {
    EXPECT_FALSE(is_valid_utf8(std::string(1, static_cast<char>(byte)))) << byte;
  }
  EXPECT_FALSE(is_valid_utf8("\xF8\x88\x80\x80\x80"));      // Five bytes,
  EXPECT_FALSE(is_valid_utf8("\xFC\x84\x80\x80\x80\x80"));  // six bytes: before RFC 3629.
}

TEST(Utf8, EmptyTextAndZeroBytesAreValid) {
  EXPECT_TRUE(is_valid_utf8(""));
  EXPECT_TRUE(is_valid_utf8(std::string(3, '\0')));
}

struct Replaced {
  std::string text;
  std::string result;
};

class Replacement : public ::testing::TestWithParam<Replaced> {};

TEST_P(Replacement, IsTheSameInOnePieceAndByteByByte) {
  EXPECT_EQ(replace_invalid_utf8(GetParam().text), GetParam().result);
  Utf8Cutter cutter;
  std::string out;
  for (char c : GetParam().text) out += cutter.feed({&c, 1});
  EXPECT_EQ(out + cutter.flush(), GetParam().result);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Replacement,
    ::testing::Values(
        Replaced{"", ""}, Replaced{"plain", "plain"},
        Replaced{"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
        // Cut at the end, after each of its bytes.
        Replaced{"a\xC3", "a" + bad}, Replaced{"a\xE2\x82", "a" + bad},
        Replaced{"a\xF0\x9F\x98", "a" + bad}, Replaced{"a\xF0", "a" + bad},
        // The same in the middle: as many replacements as at the end.
        Replaced{"\xE2\x82z", bad + "z"}, Replaced{"\xF0\x9F\x98z", bad + "z"},
        Replaced{"\xF0\x9F\xC3\xA4", bad + "\xC3\xA4"},
        Replaced{"\xF0\x9F\xF0\x9F\x98\x80", bad + "\xF0\x9F\x98\x80"},
        // The three tables of Unicode, section 3.9: overlong, surrogates, other ill-formed.
        Replaced{"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                 "A",
                 bad + bad + bad + bad + bad + bad + bad + bad + "A"},
        Replaced{"\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
                 "A",
                 bad + bad + bad + bad + bad + bad + bad + bad + "A"},
        Replaced{"\xF4\x91\x92\x93\xFF"
                 "A\x80\xBF"
                 "B",
                 bad + bad + bad + bad + bad + "A" + bad + bad + "B"},
        Replaced{"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                 "A",
                 bad + bad + bad + bad + "A"}));

TEST(Utf8, WholeCharactersEndsBeforeACutOne) {
  EXPECT_EQ(whole_characters(""), 0U);
  EXPECT_EQ(whole_characters("ab"), 2U);
  EXPECT_EQ(whole_characters("ab\xE2\x82"), 2U);
  EXPECT_EQ(whole_characters("ab\xE2\x82\xAC"), 5U);
  // What cannot become a character any more is not waited for.
  EXPECT_EQ(whole_characters("ab\xE2\x28"), 4U);
  EXPECT_EQ(whole_characters("ab\xED\xA0"), 4U);
  EXPECT_EQ(whole_characters("ab\xF4\x90"), 4U);
  EXPECT_EQ(whole_characters("ab\xC0"), 3U);
}

TEST(Utf8Cutter, GivesACharacterOnceItIsWhole) {
  Utf8Cutter cutter;
  EXPECT_EQ(cutter.feed("a\xF0\x9F"), "a");
  EXPECT_EQ(cutter.feed("\x98"), "");
  EXPECT_EQ(cutter.feed("\x80z"), "\xF0\x9F\x98\x80z");
  EXPECT_EQ(cutter.flush(), "");
}

TEST(Utf8Cutter, CanBeUsedAgainAfterFlush) {
  Utf8Cutter cutter;
  EXPECT_EQ(cutter.feed("\xE2\x82"), "");
  EXPECT_EQ(cutter.flush(), bad);
  EXPECT_EQ(cutter.flush(), "");
  EXPECT_EQ(cutter.feed("\xAC"), bad);  // Nothing of before completes it.
}

// Mostly lead and continuation bytes: plain random bytes rarely come near a character.
std::string some_bytes() {
  return *rc::gen::container<std::string>(rc::gen::weightedOneOf<char>(
      {{3, rc::gen::map(rc::gen::inRange(0x80, 0xC0), [](int c) { return static_cast<char>(c); })},
       {3, rc::gen::map(rc::gen::inRange(0xC0, 0x100), [](int c) { return static_cast<char>(c); })},
       {1, rc::gen::arbitrary<char>()}}));
}

RC_GTEST_PROP(Utf8Property, PiecesAreValidAndConcatenateToTheWhole, ()) {
  const std::string text = some_bytes();
  Utf8Cutter cutter;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto n = *rc::gen::inRange<std::size_t>(1, 6);
    const std::string piece = cutter.feed(std::string_view(text).substr(at, n));
    RC_ASSERT(is_valid_utf8(piece));
    out += piece;
    at += n;
    // Only the beginning of one character may be held back.
    const std::string so_far = replace_invalid_utf8(text.substr(0, std::min(at, text.size())));
    RC_ASSERT(out == so_far || out + bad == so_far);
  }
  const std::string rest = cutter.flush();
  RC_ASSERT(is_valid_utf8(rest));
  RC_ASSERT(out + rest == replace_invalid_utf8(text));
}

RC_GTEST_PROP(Utf8Property, ReplacingIsValidAndChangesNothingThatIsValid, ()) {
  const std::string replaced = replace_invalid_utf8(some_bytes());
  RC_ASSERT(is_valid_utf8(replaced));
  RC_ASSERT(replace_invalid_utf8(replaced) == replaced);
}

RC_GTEST_PROP(Utf8Property, WholeCharactersIsNeverMoreThanThreeBytesShort, ()) {
  const std::string text = some_bytes();
  const std::size_t whole = whole_characters(text);
  RC_ASSERT(whole <= text.size() && text.size() - whole <= 3);
  // What is left out may still become a character.
  RC_ASSERT(whole_characters(text.substr(whole)) == 0U);
}

}  // namespace
}  // namespace fermata
