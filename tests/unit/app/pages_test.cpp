// `fermata pages` on a folder that a server left.
#include "app/pages.h"

#include "unit/store/rig.h"

namespace fermata::app {
namespace {

using store::KeeperRig;
using store::TestFolder;

struct Said {
  int code;
  std::string out, err;
};

Said pages(std::initializer_list<std::string> args) {
  const std::vector<std::string> words(args);
  const std::vector<std::string_view> views(words.begin(), words.end());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run_pages(views);
  std::string out = testing::internal::GetCapturedStdout();
  return {code, std::move(out), testing::internal::GetCapturedStderr()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Folder {
  KeeperRig rig;
  store::Page page;
  std::string path = rig.folder.path();

  Folder() {
    EXPECT_EQ(rig.save(store::named(store::page_of(1, 600), "chat"), &page), store::Outcome::done);
    EXPECT_EQ(rig.save(store::page_of(2, 100)), store::Outcome::done);
    rig.keeper.reset();
  }
};

TEST(Pages, ListsShowsAndVerifies) {
  Folder folder;
  const Said list = pages({"ls", folder.path});
  EXPECT_EQ(list.code, 0);
  EXPECT_TRUE(has(list.out, "chat"));
  EXPECT_TRUE(has(list.out, "2 pages, 4 different blocks, "));
  EXPECT_FALSE(has(list.out, "not closed"));
  const Said by_name = pages({"show", folder.path, "chat"});
  EXPECT_EQ(by_name.code, 0);
  EXPECT_TRUE(has(by_name.out, to_hex(folder.page.id)));
  EXPECT_TRUE(has(by_name.out, "tokens       600"));
  EXPECT_EQ(pages({"show", folder.path, to_hex(folder.page.id)}).out, by_name.out);
  EXPECT_EQ(pages({"show", folder.path, "nobody"}).code, 1);
  const Said verified = pages({"verify", folder.path});
  EXPECT_EQ(verified.code, 0);
  EXPECT_TRUE(has(verified.out, "0 wrong"));
}

TEST(Pages, VerifyFindsDamageAndChangesNothing) {
  Folder folder;
  const std::filesystem::path block = folder.rig.folder.files("blocks").front();
  std::string bytes = TestFolder::text_of(block);
  bytes.back() ^= 1;
  TestFolder::write(block, bytes);
  for (int again = 0; again < 2; ++again) {
    const Said verified = pages({"verify", folder.path});
    EXPECT_EQ(verified.code, 1);
    EXPECT_TRUE(has(verified.out, "damaged   blocks/" + block.filename().string()));
    EXPECT_TRUE(has(verified.out, "1 wrong"));
  }
  std::filesystem::remove(folder.rig.folder / "journal");
  const Said verified = pages({"verify", folder.path});
  EXPECT_EQ(verified.code, 1);
  EXPECT_TRUE(has(verified.out, "journal"));
  EXPECT_TRUE(has(verified.out, "2 pages"));
}

TEST(Pages, GcRemovesOrphansAndTellsOfWhatIsMissing) {
  Folder folder;
  TestFolder::write(folder.rig.folder / "blocks/00112233445566778899aabbccddeeff", "12345");
  const Said clean = pages({"gc", folder.path});
  EXPECT_EQ(clean.code, 0);
  EXPECT_TRUE(has(clean.out, "1 files of no use removed (5 bytes)"));
  for (const auto& file : folder.rig.folder.files("blocks")) std::filesystem::remove(file);
  const Said lost = pages({"gc", folder.path});
  EXPECT_EQ(lost.code, 1);
  EXPECT_TRUE(has(lost.out, "missing "));
  EXPECT_TRUE(has(pages({"ls", folder.path}).out, "0 pages"));
}

TEST(Pages, WrongUsageAndFoldersThatAreNone) {
  EXPECT_EQ(pages({}).code, 2);
  EXPECT_EQ(pages({"mend", "/nowhere"}).code, 2);
  EXPECT_EQ(pages({"ls"}).code, 2);
  const Said nowhere = pages({"ls", "/nowhere/at/all"});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_TRUE(has(nowhere.err, "error: "));
  KeeperRig in_use;
  EXPECT_TRUE(has(pages({"gc", in_use.folder.path()}).err, "another process"));
}

}  // namespace
}  // namespace fermata::app
