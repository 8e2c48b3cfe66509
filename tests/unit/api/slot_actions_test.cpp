// Which request an operator means, as the query says it.
#include "api/slot_actions.h"

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

TEST(SlotActions, QueryValuesAreFoundByTheirWholeName) {
  EXPECT_EQ(query_value("action=park&id_task=7", "id_task"), "7");
  EXPECT_EQ(query_value("action=park&id_task=7", "action"), "park");
  EXPECT_EQ(query_value("my_action=x&action=", "action"), "");
  EXPECT_EQ(query_value("id_task=1&id_task=2", "id_task"), "1");
  EXPECT_FALSE(query_value("actions=x&action", "action").has_value());
  EXPECT_FALSE(query_value("", "action").has_value());
  EXPECT_FALSE(query_value("&&", "action").has_value());
}

TEST(SlotActions, PathsOfOneSlotOrOfAll) {
  for (const char* path : {"/slots", "/slots/0", "/slots/-1", "/slots/x"}) {
    EXPECT_TRUE(is_slot_path(path)) << path;
  }
  for (const char* path : {"/", "/slot", "/slotsx", "/slots/", "/slots/1/2", "/v1/slots/1"}) {
    EXPECT_FALSE(is_slot_path(path)) << path;
  }
}

}  // namespace
}  // namespace fermata::api
