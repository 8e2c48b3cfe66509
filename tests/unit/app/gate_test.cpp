// What is answered while the model loads, and by whom afterwards.
#include "app/gate.h"

#include <gtest/gtest.h>

namespace fermata::app {
namespace {

class Loaded final : public api::Service {
 public:
  std::unique_ptr<api::Exchange> begin(api::Inquiry inquiry) override {
    return api::ready_exchange(api::Head{}, "loaded " + inquiry.path);
  }
  bool is_cheap(const api::Inquiry& inquiry) const override { return inquiry.path == "/cheap"; }
};

api::Inquiry asking(std::string path) {
  api::Inquiry inquiry;
  inquiry.path = std::move(path);
  return inquiry;
}

TEST(Gate, LoadingComesBeforeKeysAndRoutes) {
  Gate gate;
  for (const char* path : {"/health", "/slots", "/no-such-path"}) {
    EXPECT_TRUE(gate.is_cheap(asking(path)));
    const api::Piece piece = gate.begin(asking(path))->pull();
    ASSERT_TRUE(piece.head && piece.done);
    EXPECT_EQ(piece.head->status, 503);
    EXPECT_EQ(piece.body,
              R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})");
  }
}

TEST(Gate, OpenItLetsEverythingThrough) {
  Gate gate;
  Loaded service;
  gate.open(service);
  EXPECT_TRUE(gate.is_cheap(asking("/cheap")));
  EXPECT_FALSE(gate.is_cheap(asking("/x")));
  EXPECT_EQ(gate.begin(asking("/x"))->pull().body, "loaded /x");
}

}  // namespace
}  // namespace fermata::app
