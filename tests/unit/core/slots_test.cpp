// Names that a client gives: of files of slots, and of pages.
#include "core/slots.h"

#include "core/pages.h"

#include <string>

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(SlotFileNames, AreOneComponentThatEverySystemReadsAlike) {
  for (const char* name : {"x", "chat.bin", "-x", ".x", "a b",
                           "Gr\xC3\xBC\xC3\x9F"
                           "e",
                           "a;b"}) {
    EXPECT_TRUE(is_slot_file_name(name)) << name;
  }
  EXPECT_TRUE(is_slot_file_name(std::string(250, 'x')));
  for (const char* name : {"",
                           ".",
                           "..",
                           "../x",
                           "a..b",
                           "a/b",
                           "a\\b",
                           "a:b",
                           "a*b",
                           "a?b",
                           "a\"b",
                           "a<b",
                           "a>b",
                           "a|b",
                           " a",
                           "a ",
                           "a.",
                           "a\nb",
                           "a\x7f",
                           "a\xC2\x85",
                           "\xFF",
                           "a\xC0\xAF",
                           "\xED\xA0\x80",
                           "\xEF\xBB\xBFx",
                           "a\xEF\xBC\x8E",
                           "a\xE2\x88\x95",
                           "x.part"}) {
    EXPECT_FALSE(is_slot_file_name(name)) << name;
  }
  EXPECT_FALSE(is_slot_file_name(std::string("a\0b", 3)));
  EXPECT_FALSE(is_slot_file_name(std::string(251, 'x')));
}

TEST(PageNames, OfClientsAreNoneOfNamelessPages) {
  EXPECT_TRUE(may_name_page("Chat_1.a-b"));
  EXPECT_TRUE(is_page_name("id.0123"));
  EXPECT_FALSE(may_name_page("id.0123"));
  EXPECT_FALSE(may_name_page(""));
  EXPECT_FALSE(may_name_page(".x"));
}

}  // namespace
}  // namespace fermata
