// Every kind of damage is a miss with a reason: never wrong bytes, never a crash, nothing outside
// the folder touched.
#include "rig.h"
#include "store/format.h"

#include <functional>

#include <sys/stat.h>

namespace fermata::store {
namespace {

namespace fs = std::filesystem;

// Two pages with a common block, closed.
struct Scene {
  KeeperRig rig;
  Given first, second;

  Scene() {
    std::vector<TokenId> tokens = tokens_of(1, 512);
    first = page_of(tokens);
    for (const TokenId token : tokens_of(2, 100)) tokens.push_back(token);
    second = page_of(tokens);
    second.draft.extra = bytes_of(3, 40);
    EXPECT_EQ(rig.save(first), Outcome::done);
    EXPECT_EQ(rig.save(second), Outcome::done);
    rig.keeper.reset();
  }
  // Whatever is found has the right bytes (check() compares); whatever is not is a miss, and both
  // can be stored and read again.
  void survives() {
    rig.open();
    if (rig.keeper == nullptr) return;
    for (int again = 0; again < 3; ++again) {
      for (const Given* given : {&first, &second}) {
        const Outcome outcome = rig.check(*given);
        EXPECT_TRUE(outcome == Outcome::done || outcome == Outcome::missing ||
                    outcome == Outcome::damaged || outcome == Outcome::foreign)
            << name_of(outcome);
      }
    }
    for (const Given* given : {&first, &second}) EXPECT_EQ(rig.save(*given), Outcome::done);
    for (const Given* given : {&first, &second}) EXPECT_EQ(rig.check(*given), Outcome::done);
    EXPECT_EQ(rig.find(second.draft.tokens)->tokens, Tokens(612));
  }
};

// Calls `damage` with each file of the folder, each time in a fresh one.
void for_each_file(const std::function<void(const fs::path&)>& damage) {
  std::size_t files = 1;
  for (std::size_t i = 0; i < files; ++i) {
    Scene scene;
    std::vector<fs::path> all = scene.rig.folder.files("blocks");
    for (const fs::path& page : scene.rig.folder.files("pages")) all.push_back(page);
    all.push_back(scene.rig.folder / "journal");
    std::sort(all.begin(), all.end());
    files = all.size();
    SCOPED_TRACE(all[i].filename().string());
    damage(all[i]);
    scene.survives();
  }
  EXPECT_GE(files, 6U);
}

TEST(Damage, FilesCutShortAnywhere) {
  for (const double part : {0.0, 0.01, 0.3, 0.7, 0.999}) {
    for_each_file([part](const fs::path& file) {
      const auto size = static_cast<double>(fs::file_size(file));
      fs::resize_file(file, static_cast<std::uintmax_t>(size * part));
    });
  }
}

TEST(Damage, AJournalCutAtEveryByteOpensAndTellsNoWrongPage) {
  Scene scene;
  const std::string whole = TestFolder::text_of(scene.rig.folder / "journal");
  const fs::path copy = scene.rig.folder.outside() / "copy";
  fs::copy(scene.rig.folder.path(), copy, fs::copy_options::recursive);
  for (std::size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 7) {
    fs::remove_all(scene.rig.folder.path());
    fs::copy(copy, scene.rig.folder.path(), fs::copy_options::recursive);
    fs::resize_file(scene.rig.folder / "journal", size);
    SCOPED_TRACE(size);
    scene.rig.open();
    for (const Given* given : {&scene.first, &scene.second}) {
      const Outcome outcome = scene.rig.check(*given);
      EXPECT_TRUE(outcome == Outcome::done || outcome == Outcome::missing);
    }
    scene.rig.keeper->gc();
    for (const Given* given : {&scene.first, &scene.second}) {
      EXPECT_EQ(scene.rig.save(*given), Outcome::done);
      EXPECT_EQ(scene.rig.check(*given), Outcome::done);
    }
    scene.rig.keeper.reset();
  }
}

TEST(Damage, FlippedBits) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for_each_file([seed](const fs::path& file) {
      std::string bytes = TestFolder::text_of(file);
      Random random(seed);
      // Headers are short and hold the most.
      const auto last = static_cast<std::int64_t>(bytes.size()) - 1;
      const std::int64_t at =
          random.between(0, seed % 2 == 0 ? std::min<std::int64_t>(last, 120) : last);
      bytes[static_cast<std::size_t>(at)] ^= static_cast<char>(1 << random.between(0, 7));
      TestFolder::write(file, bytes);
    });
  }
}

TEST(Damage, AFlippedBitOfABlockIsNamedAndPutAside) {
  Scene scene;
  for (const fs::path& file : scene.rig.folder.files("blocks")) {
    std::string bytes = TestFolder::text_of(file);
    bytes[block_header_bytes + 10] ^= 1;
    TestFolder::write(file, bytes);
  }
  scene.rig.open();
  EXPECT_EQ(scene.rig.check(scene.second), Outcome::damaged);
  EXPECT_EQ(scene.rig.keeper->stats().loads[Outcome::damaged], 1U);
  EXPECT_EQ(scene.rig.keeper->stats().quarantined.value(), 1U);
  EXPECT_EQ(scene.rig.folder.files("quarantine").size(), 1U);
  EXPECT_EQ(scene.rig.keeper->stats().evicted[static_cast<std::size_t>(Eviction::damaged)].value(),
            1U);
}

TEST(Damage, ForeignFilesInThePlaceOfOurs) {
  for_each_file([](const fs::path& file) { TestFolder::write(file, "something else entirely"); });
  for_each_file([](const fs::path& file) { TestFolder::write(file, ""); });
  for_each_file([](const fs::path& file) { fs::remove(file); });
  for_each_file([](const fs::path& file) {
    fs::remove(file);
    fs::create_directory(file);
  });
  for_each_file([](const fs::path& file) {
    fs::remove(file);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  });
}

// B8: files of another model or version, whole in themselves.
TEST(Damage, BlocksOfAnotherModelOrVersionAreForeign) {
  Scene scene;
  const std::vector<std::byte> bytes = scene.second.bytes[0];
  const BlockRef ref = {content_id({}, bytes), Tokens(256), Bytes(500)};
  Fingerprint other{};
  other[0] = std::byte{1};
  const fs::path file = scene.rig.folder / ("blocks/" + to_hex(ref.id));
  ASSERT_TRUE(fs::exists(file));
  const auto with_header = [&](const BlockHeader& header) {
    std::string text(reinterpret_cast<const char*>(header.data()), header.size());
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    TestFolder::write(file, text);
  };
  with_header(encode_block_header(ref, other));
  scene.rig.open();
  EXPECT_EQ(scene.rig.check(scene.second), Outcome::foreign);
  EXPECT_EQ(scene.rig.save(scene.second), Outcome::done);
  EXPECT_EQ(scene.rig.check(scene.second), Outcome::done);
  BlockHeader newer = encode_block_header(ref, {});
  newer[8] = std::byte{2};
  with_header(newer);
  EXPECT_EQ(scene.rig.check(scene.second), Outcome::foreign);
  scene.survives();
}

// B5: a symlink in the folder led a write elsewhere, and success was reported.
TEST(Damage, ASymlinkIsNeverFollowed) {
  for_each_file([](const fs::path& file) {
    fs::path base = file.parent_path();
    while (!fs::exists(base / "canary")) base = base.parent_path();
    const fs::path canary = base / "canary";
    fs::remove(file);
    fs::create_symlink(canary, file);
  });
  for (const char* name : {"blocks", "pages", "quarantine"}) {
    Scene scene;
    const fs::path elsewhere = scene.rig.folder.outside() / "elsewhere";
    fs::rename(scene.rig.folder / name, elsewhere);
    fs::create_directory_symlink(elsewhere, scene.rig.folder / name);
    EXPECT_NE(scene.rig.trouble().find("symlink"), std::string::npos) << name;
  }
  Scene scene;
  const fs::path moved = scene.rig.folder.outside() / "moved";
  fs::rename(scene.rig.folder.path(), moved);
  fs::create_directory_symlink(moved, scene.rig.folder.path());
  EXPECT_NE(scene.rig.trouble().find("symlink"), std::string::npos);
  fs::remove(scene.rig.folder / "lock");
  fs::remove(scene.rig.folder.path());
  fs::rename(moved, scene.rig.folder.path());
  fs::create_symlink(scene.rig.folder.canary(), scene.rig.folder / "lock");
  EXPECT_FALSE(scene.rig.trouble().empty());
}

TEST(Damage, WhatCannotBeOpenedSaysWhatToDo) {
  KeeperRig rig;
  auto second = Keeper::open(rig.options, rig.clock);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().find("another process"), std::string::npos);
  rig.keeper.reset();
  const std::string path = rig.folder.path();
  fs::remove_all(path);
  TestFolder::write(path, "a file");
  EXPECT_FALSE(rig.trouble().empty());
  fs::remove(path);
  fs::create_directory(path);
  TestFolder::write(rig.folder / "thesis.txt", "precious");
  EXPECT_NE(rig.trouble().find("other files"), std::string::npos);
  EXPECT_EQ(rig.folder.files("").size(), 1U);
}

TEST(Damage, FoldersAndFilesAreForTheirOwnerAlone) {
  Scene scene;
  for (const auto& entry : fs::recursive_directory_iterator(scene.rig.folder.path())) {
    const fs::perms others = fs::perms::group_all | fs::perms::others_all;
    EXPECT_EQ(entry.status().permissions() & others, fs::perms::none) << entry.path();
  }
}

// B4: a save to a full disk left half a file, and the older page of that name was gone.
TEST(Damage, AFullDiskLeavesTheOlderPageWhole) {
  KeeperOptions options;
  const auto gate = std::make_shared<StopWrites>(StopWrites::never, ENOSPC);
  options.gate = gate;
  KeeperRig rig(options);
  const std::vector<TokenId> tokens = tokens_of(1, 700);
  const Given older = named(page_of({tokens.begin(), tokens.begin() + 300}), "x");
  const Given newer = named(page_of(tokens), "x");
  ASSERT_EQ(rig.save(older), Outcome::done);
  bool done = false;
  for (std::int64_t after = 0; !done; ++after) {
    ASSERT_LT(after, 100);
    SCOPED_TRACE(after);
    gate->allow(after);
    const Outcome outcome = rig.save(newer);
    gate->allow(StopWrites::never);
    done = outcome == Outcome::done;
    if (done) break;
    EXPECT_EQ(outcome, Outcome::full);
    EXPECT_EQ(rig.keeper->find({}, "x")->tokens, Tokens(300));
    EXPECT_EQ(rig.check(older), Outcome::done);
    EXPECT_EQ(rig.folder.files("blocks").size(), 2U);
    EXPECT_EQ(rig.folder.files("pages").size(), 1U);
  }
  EXPECT_EQ(rig.check(newer), Outcome::done);
  rig.open();
  EXPECT_EQ(rig.check(newer), Outcome::done);
}

TEST(Damage, OnAFullDiskPagesCanStillBeErased) {
  KeeperOptions options;
  const auto gate = std::make_shared<StopWrites>(StopWrites::never, ENOSPC);
  options.gate = gate;
  KeeperRig rig(options);
  const Given given = named(page_of(1, 300), "x"), other = page_of(2, 300);
  Page page;
  ASSERT_EQ(rig.save(given, &page), Outcome::done);
  ASSERT_EQ(rig.save(other), Outcome::done);
  gate->allow(0);
  EXPECT_EQ(rig.keeper->erase(page.id), Outcome::done);
  EXPECT_EQ(rig.folder.files("blocks").size(), 2U);
  EXPECT_FALSE(rig.keeper->find({}, "x"));
  rig.keeper.reset();
  gate->allow(StopWrites::never);
  rig.open();
  EXPECT_EQ(rig.check(given), Outcome::missing);
  EXPECT_EQ(rig.check(given), Outcome::missing);
  EXPECT_EQ(rig.check(other), Outcome::done);
  EXPECT_EQ(rig.keeper->stats().pages.value(), 1);
}

TEST(Damage, AReadOnlyFolderServesAndSavesNothing) {
  KeeperOptions options;
  const auto gate = std::make_shared<StopWrites>(StopWrites::never, EROFS);
  options.gate = gate;
  KeeperRig rig(options);
  const Given given = page_of(1, 600);
  ASSERT_EQ(rig.save(given), Outcome::done);
  gate->allow(0);
  EXPECT_EQ(rig.save(page_of(2, 600)), Outcome::failed);
  EXPECT_EQ(rig.check(given), Outcome::done);
  gate->allow(StopWrites::never);
  rig.keeper.reset();
  gate->allow(0);
  EXPECT_NE(rig.trouble().find("read-only"), std::string::npos);
  rig.options.read_only = true;
  rig.open();
  EXPECT_EQ(rig.check(given), Outcome::done);
  EXPECT_EQ(rig.save(page_of(2, 600)), Outcome::failed);
}

TEST(Damage, AForeignVersionOfTheFolderIsLeftAlone) {
  Scene scene;
  std::array<std::byte, journal_header_bytes> header = encode_journal_header();
  std::string text(reinterpret_cast<const char*>(header.data()), header.size());
  text[8] = 2;
  TestFolder::write(scene.rig.folder / "journal", text);
  scene.survives();  // A flipped bit: the checksum does not fit.
}

}  // namespace
}  // namespace fermata::store
