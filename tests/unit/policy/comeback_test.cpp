// A change of the geometry whose copy failed left a request parked under the admission-only policy,
// which never looked at who is parked: the client waited for ever.
#include "unit/policy/scene.h"

namespace fermata::policy {
namespace {

using Indices = std::vector<std::size_t>;

class ComingBack : public ::testing::Test {
 protected:
  ComingBack() { scene_.view().overcommit = false; }

  ParkedView& park(std::int64_t need, std::uint64_t group = 0) {
    ParkedView& parked = scene_.parked(0);
    parked.id = RequestId(next_id_++);
    parked.mode = ParkMode::recompute;
    parked.group = GroupId(group);
    parked.need = Tokens(need);
    return parked;
  }
  void wait(std::int64_t need) { scene_.waiting(next_id_++, need).need = Tokens(need); }

  Scene scene_{100, 3};
  std::uint64_t next_id_ = 100;
};

TEST_F(ComingBack, ParkedOnesGoBeforeThoseWhoWait) {
  park(60);
  wait(60);
  EXPECT_EQ(scene_.resumes(), Indices{0});
  EXPECT_TRUE(scene_.plan().admit.empty()) << "its cells are promised";
}

TEST_F(ComingBack, IdleConversationsMakeRoom) {
  for (int seat = 0; seat < 3; ++seat) scene_.idle(seat, 30, 1);
  park(90);
  EXPECT_EQ(scene_.resumes(), Indices{0});
  EXPECT_EQ(scene_.plan().evict.size(), 3U);
}

TEST_F(ComingBack, NobodyPassesTheFirst) {
  scene_.decoding(0, 50);
  park(60);
  park(10);
  wait(10);
  EXPECT_EQ(scene_.resumes(), Indices{});
  EXPECT_TRUE(scene_.plan().admit.empty());
}

TEST_F(ComingBack, TheMoreUrgentOneIsFirst) {
  scene_.decoding(0, 50);
  park(40);
  park(40).priority = 1;
  EXPECT_EQ(scene_.resumes(), Indices{1});
}

TEST_F(ComingBack, ChoicesOfOneRequestComeTogetherOrNotAtAll) {
  scene_.decoding(0, 10);
  park(20, 7);
  park(20, 7);
  EXPECT_EQ(scene_.resumes(), (Indices{0, 1}));
  scene_.decoding(1, 10);
  EXPECT_EQ(scene_.resumes(), Indices{}) << "one seat is not enough";
}

TEST_F(ComingBack, ChoicesThatDoNotFitTogetherAnyMoreComeInPart) {
  scene_ = Scene(100, 1);
  scene_.view().overcommit = false;
  park(20, 7);
  park(20, 7);
  wait(10);
  EXPECT_EQ(scene_.resumes(), Indices{0});
  EXPECT_TRUE(scene_.plan().admit.empty());
}

TEST_F(ComingBack, WhoIsHeldOrWhoseSeatIsTakenIsPassed) {
  scene_.decoding(0, 10);
  park(20).held = true;
  park(20).seat = Seat(0);
  park(20);
  EXPECT_EQ(scene_.resumes(), Indices{2});
}

}  // namespace
}  // namespace fermata::policy
