// What is stored is found again, byte by byte, now and after a restart; budgets hold.
#include "base/check.h"
#include "rig.h"

namespace fermata::store {
namespace {

TEST(Keeper, GivesBackExactlyWhatWasSavedAlsoAfterARestart) {
  KeeperRig rig;
  Given given = named(page_of(1, 600), "chat");
  given.draft.extra = bytes_of(9, 100);
  given.draft.in_chunks = Tokens(512);
  given.draft.price_seconds = 2.5;
  Page page;
  ASSERT_EQ(rig.save(given, &page), Outcome::done);
  for (int start = 0; start < 2; ++start) {
    const auto found = rig.keeper->find({}, "chat");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->id, page.id);
    EXPECT_EQ(found->tokens, Tokens(600));
    EXPECT_EQ(found->bytes, Bytes(1500));
    EXPECT_EQ(found->price_seconds, 2.5);
    EXPECT_TRUE(is_prefix(*found, given.draft.tokens));
    Loaded loaded;
    ASSERT_EQ(rig.keeper->load(page.id, {}, 3, loaded), Outcome::done);
    EXPECT_EQ(loaded.tokens, given.draft.tokens);
    EXPECT_EQ(loaded.extra, given.draft.extra);
    EXPECT_EQ(rig.check(given), Outcome::done);
    rig.open();
    EXPECT_FALSE(rig.keeper->opened().unclean);
    EXPECT_EQ(rig.keeper->opened().pages, 1U);
  }
}

// B1: a restore said success and the next request computed everything again.
TEST(Keeper, FindsTheLongestStoredPrefix) {
  KeeperRig rig;
  const std::vector<TokenId> base = tokens_of(1, 1000);
  const auto first = [&](std::size_t n) {
    return std::vector<TokenId>(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(n));
  };
  ASSERT_EQ(rig.save(page_of(first(300))), Outcome::done);
  Page longer;
  ASSERT_EQ(rig.save(page_of(first(700)), &longer), Outcome::done);
  EXPECT_EQ(rig.find(base)->tokens, Tokens(700));
  EXPECT_EQ(rig.find(base)->blocks, 3U);
  EXPECT_EQ(rig.find(first(700))->tokens, Tokens(700));
  EXPECT_EQ(rig.find(first(699))->tokens, Tokens(512));  // Its tail is not a prefix.
  EXPECT_EQ(rig.find(first(699))->page, longer.id);
  EXPECT_EQ(rig.find(first(310))->tokens, Tokens(300));
  EXPECT_EQ(rig.find(first(299))->tokens, Tokens(256));
  EXPECT_FALSE(rig.find(first(255)));
  EXPECT_FALSE(rig.find(tokens_of(2, 1000)));
  EXPECT_FALSE(rig.find({}));

  std::vector<TokenId> branch = first(600);
  branch[550] = TokenId{5000};
  EXPECT_EQ(rig.find(branch)->tokens, Tokens(512));
  EXPECT_EQ(rig.check(page_of(first(700))), Outcome::done);
}

// B2: models without cells for each token have snapshots, of use only as a whole.
TEST(Keeper, ASnapshotIsFoundOnlyByAllItsTokens) {
  KeeperRig rig;
  const std::vector<TokenId> base = tokens_of(1, 1000);
  for (const std::size_t n : {100U, 512U, 700U}) {
    const std::vector<TokenId> some(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(n));
    ASSERT_EQ(rig.save(page_of(some, 500, Kind::snapshot)), Outcome::done);
  }
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(rig.find(base, Kind::snapshot)->tokens, Tokens(700));
    const std::vector<TokenId> most(base.begin(), base.begin() + 699);
    EXPECT_EQ(rig.find(most, Kind::snapshot)->tokens, Tokens(512));
    const std::vector<TokenId> few(base.begin(), base.begin() + 300);
    EXPECT_EQ(rig.find(few, Kind::snapshot)->tokens, Tokens(100));
    EXPECT_EQ(rig.find(few, Kind::snapshot)->blocks, 1U);
    EXPECT_FALSE(rig.find(base));  // Of the other kind there is nothing.
    rig.open();
  }
}

// C1: a request continued somebody else's conversation.
TEST(Keeper, OwnersDoNotSeeEachOther) {
  KeeperRig rig;
  Given given = named(page_of(1, 600), "chat");
  given.draft.owner = owner_of("a");
  Page page;
  ASSERT_EQ(rig.save(given, &page), Outcome::done);
  const Owner other = owner_of("b");
  EXPECT_FALSE(rig.keeper->find(other, {}, Kind::blocks, given.draft.tokens));
  EXPECT_FALSE(rig.keeper->find(other, "chat"));
  EXPECT_TRUE(rig.keeper->list(other, "").empty());
  EXPECT_EQ(rig.keeper->list(owner_of("a"), "ch").size(), 1U);
  given.draft.owner = other;
  ASSERT_EQ(rig.save(given), Outcome::done);  // The same name, another page.
  EXPECT_EQ(rig.keeper->stats().pages.value(), 2);
  EXPECT_EQ(rig.keeper->stats().blocks.value(), 3);
}

// B8: a state of other weights was accepted.
TEST(Keeper, RefusesAnotherModelAndKeepsThePage) {
  KeeperRig rig;
  const Given given = page_of(1, 600);
  Page page;
  ASSERT_EQ(rig.save(given, &page), Outcome::done);
  Fingerprint other{};
  other[5] = std::byte{1};
  EXPECT_FALSE(rig.keeper->find({}, other, Kind::blocks, given.draft.tokens));
  Loaded loaded;
  EXPECT_EQ(rig.keeper->load(page.id, other, 3, loaded), Outcome::foreign);
  EXPECT_EQ(rig.check(given), Outcome::done);
}

TEST(Keeper, StoresSharedBlocksOnceAndRemovesThemWithTheLastPage) {
  KeeperRig rig;
  const std::vector<TokenId> base = tokens_of(1, 512);
  std::vector<PageId> ids;
  for (std::uint64_t i = 0; i < 3; ++i) {
    std::vector<TokenId> tokens = base;
    for (const TokenId token : tokens_of(10 + i, 100)) tokens.push_back(token);
    Page page;
    ASSERT_EQ(rig.save(page_of(tokens), &page), Outcome::done);
    ids.push_back(page.id);
  }
  EXPECT_EQ(rig.folder.files("blocks").size(), 5U);
  EXPECT_EQ(rig.keeper->stats().blocks.value(), 5);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(rig.keeper->erase(ids[i]), Outcome::done);
    EXPECT_EQ(rig.folder.files("blocks").size(), i == 2 ? 0U : 4U - i);
  }
  EXPECT_EQ(rig.keeper->erase(ids[0]), Outcome::missing);
  EXPECT_TRUE(rig.folder.files("pages").empty());
  EXPECT_EQ(rig.keeper->stats().bytes.value(), 0);
}

TEST(Keeper, ANewPageTakesThePlaceOfThatNameOrOfWhatItReplaces) {
  KeeperRig rig;
  const std::vector<TokenId> base = tokens_of(1, 700);
  const std::vector<TokenId> shorter(base.begin(), base.begin() + 300);
  Page first, second, third;
  ASSERT_EQ(rig.save(named(page_of(shorter), "x"), &first), Outcome::done);
  ASSERT_EQ(rig.save(named(page_of(base), "x"), &second), Outcome::done);
  EXPECT_FALSE(rig.keeper->find(first.id));
  EXPECT_EQ(rig.keeper->find({}, "x")->id, second.id);
  ASSERT_EQ(rig.save(page_of(shorter), &third), Outcome::done);
  rig.open();
  EXPECT_TRUE(rig.keeper->find({}, "x"));
  EXPECT_TRUE(rig.keeper->find(third.id));
  ASSERT_EQ(rig.save(page_of(shorter)), Outcome::done);  // The same again is the same page.
  EXPECT_EQ(rig.keeper->stats().pages.value(), 2);
}

TEST(Keeper, APageGoesWithTheNextTurnOfItsConversation) {
  // Page out right after a turn left the conversation twice: under its name, and without.
  KeeperRig rig;
  const std::vector<TokenId> base = tokens_of(1, 700);
  const auto turn = [&](std::size_t tokens) {
    Given given = page_of({base.begin(), base.begin() + static_cast<std::ptrdiff_t>(tokens)});
    given.draft.replaces_beginning = true;
    return given;
  };
  ASSERT_EQ(rig.save(turn(300)), Outcome::done);
  ASSERT_EQ(rig.save(turn(500)), Outcome::done);
  EXPECT_EQ(rig.keeper->stats().pages.value(), 1);
  ASSERT_EQ(rig.save(named(turn(500), "x")), Outcome::done);
  EXPECT_EQ(rig.keeper->stats().pages.value(), 1);
  ASSERT_EQ(rig.save(turn(500)), Outcome::done);  // It is there, under that name.
  EXPECT_EQ(rig.keeper->stats().pages.value(), 1);
  ASSERT_EQ(rig.save(turn(700)), Outcome::done);  // What has a name stays.
  EXPECT_EQ(rig.keeper->stats().pages.value(), 2);
  Page pinned;
  ASSERT_EQ(rig.save(page_of(2, 300), &pinned), Outcome::done);
  ASSERT_EQ(rig.keeper->pin(pinned.id, true, pinned), Outcome::done);
  Given next = page_of(2, 600);
  next.draft.replaces_beginning = true;
  ASSERT_EQ(rig.save(next), Outcome::done);
  rig.open();
  EXPECT_TRUE(rig.keeper->find(pinned.id));
  EXPECT_TRUE(rig.keeper->find({}, "x"));
  EXPECT_EQ(rig.keeper->stats().pages.value(), 4);
}

TEST(Keeper, WhatIsBeingLoadedIsNotReplaced) {
  KeeperRig rig;
  const std::vector<TokenId> base = tokens_of(1, 700);
  Page before, after;
  ASSERT_EQ(rig.save(page_of({base.begin(), base.begin() + 300}), &before), Outcome::done);
  ASSERT_TRUE(rig.keeper->hold(before.id));
  Given next = page_of(base);
  next.draft.replaces_beginning = true;
  ASSERT_EQ(rig.save(next, &after), Outcome::done);
  EXPECT_TRUE(rig.keeper->find(before.id));
  rig.keeper->let_go(before.id);
  EXPECT_EQ(rig.check(next), Outcome::done);
}

TEST(Keeper, PinsRenamesAndForks) {
  KeeperRig rig;
  const Given given = named(page_of(1, 600), "x");
  Page page, other, copy;
  ASSERT_EQ(rig.save(given, &page), Outcome::done);
  ASSERT_EQ(rig.save(named(page_of(2, 300), "y"), &other), Outcome::done);
  EXPECT_EQ(rig.keeper->pin(page.id, true, page), Outcome::done);
  EXPECT_TRUE(page.pinned);
  EXPECT_EQ(rig.keeper->rename(page.id, "y", page), Outcome::taken);
  EXPECT_EQ(rig.keeper->rename(page.id, "z", page), Outcome::done);
  EXPECT_EQ(rig.keeper->fork(page.id, "y", copy), Outcome::taken);
  EXPECT_EQ(rig.keeper->fork(page.id, "fork", copy), Outcome::done);
  EXPECT_NE(copy.id, page.id);
  for (int start = 0; start < 2; ++start) {
    EXPECT_FALSE(rig.keeper->find({}, "x"));
    EXPECT_TRUE(rig.keeper->find({}, "z")->pinned);
    EXPECT_FALSE(rig.keeper->find({}, "fork")->pinned);
    EXPECT_EQ(rig.folder.files("blocks").size(), 5U);
    rig.open();
  }
  EXPECT_EQ(rig.keeper->erase(page.id), Outcome::done);
  Loaded loaded;
  EXPECT_EQ(rig.keeper->load(copy.id, {}, 3, loaded), Outcome::done);
  EXPECT_EQ(loaded.tokens, given.draft.tokens);
  EXPECT_EQ(rig.keeper->pin(page.id, true, page), Outcome::missing);
}

// A8: a budget was a hint. The bytes are under it after every save.
TEST(Keeper, EvictsTheCheapestFirstAndNeverMoreThanTheBudget) {
  KeeperOptions options;
  options.bytes_max = Bytes(20'000);
  KeeperRig rig(options);
  std::vector<Given> pages;
  for (std::uint64_t i = 0; i < 12; ++i) {
    Given given = page_of(i, 300, 1000);
    given.draft.price_seconds = i == 3 ? 1000 : 1;  // Dear, so it stays.
    given.draft.pinned = i == 4;
    ASSERT_EQ(rig.save(given), Outcome::done);
    EXPECT_LE(rig.keeper->stats().bytes.value(), 20'000);
    pages.push_back(given);
    rig.now += 10;
  }
  EXPECT_EQ(rig.check(pages[0]), Outcome::missing);
  EXPECT_EQ(rig.check(pages[3]), Outcome::done);
  EXPECT_EQ(rig.check(pages[4]), Outcome::done);
  EXPECT_EQ(rig.check(pages[11]), Outcome::done);
  EXPECT_GT(rig.keeper->stats().evicted[static_cast<std::size_t>(Eviction::bytes)].value(), 0U);
  EXPECT_EQ(rig.save(page_of(99, 300, 50'000)), Outcome::full);  // Alone it is too large.
  EXPECT_EQ(rig.check(pages[11]), Outcome::done);
  rig.options.bytes_max = Bytes(8'000);
  rig.open();
  EXPECT_LE(rig.keeper->stats().bytes.value(), 8'000);
  EXPECT_EQ(rig.check(pages[4]), Outcome::done);
}

TEST(Keeper, NeverEvictsWhatIsHeldOrPinned) {
  KeeperOptions options;
  options.pages_max = 2;
  KeeperRig rig(options);
  Page held, pinned;
  ASSERT_EQ(rig.save(page_of(1, 300), &held), Outcome::done);
  ASSERT_EQ(rig.save(page_of(2, 300), &pinned), Outcome::done);
  ASSERT_EQ(rig.keeper->pin(pinned.id, true, pinned), Outcome::done);
  ASSERT_TRUE(rig.keeper->hold(held.id));
  EXPECT_EQ(rig.save(page_of(3, 300)), Outcome::full);
  rig.keeper->let_go(held.id);
  EXPECT_EQ(rig.save(page_of(3, 300)), Outcome::done);
  EXPECT_FALSE(rig.keeper->find(held.id));
  EXPECT_TRUE(rig.keeper->find(pinned.id));
  EXPECT_EQ(rig.keeper->stats().evicted[static_cast<std::size_t>(Eviction::count)].value(), 1U);
}

TEST(Keeper, DropsWhatWasNotUsedForTooLong) {
  KeeperOptions options;
  options.ttl_seconds = 100;
  KeeperRig rig(options);
  const Given a = page_of(1, 300), b = page_of(2, 300), c = page_of(3, 300);
  Page page;
  ASSERT_EQ(rig.save(a), Outcome::done);
  ASSERT_EQ(rig.save(b), Outcome::done);
  ASSERT_EQ(rig.save(c, &page), Outcome::done);
  ASSERT_EQ(rig.keeper->pin(page.id, true, page), Outcome::done);
  rig.now += 90;
  EXPECT_EQ(rig.check(a), Outcome::done);
  rig.now += 50;
  rig.open();  // The use of `a` was remembered.
  EXPECT_EQ(rig.check(a), Outcome::done);
  EXPECT_EQ(rig.check(b), Outcome::missing);
  EXPECT_EQ(rig.check(c), Outcome::done);
  rig.now += 101;
  EXPECT_EQ(rig.keeper->expire(), 1U);
}

TEST(Keeper, BoundsTheBytesOfAnHour) {
  KeeperOptions options;
  options.bytes_per_hour_max = Bytes(10'000);
  KeeperRig rig(options);
  Outcome outcome = Outcome::done;
  std::uint64_t saved = 0;
  while (outcome == Outcome::done && saved < 100) outcome = rig.save(page_of(saved++, 100, 1000));
  EXPECT_EQ(outcome, Outcome::refused_rate);
  EXPECT_LE(rig.keeper->stats().bytes_written.value(), 12'000U);
  rig.now += 1800;
  EXPECT_EQ(rig.save(page_of(200, 100, 1000)), Outcome::refused_rate);
  rig.now += 1800;
  EXPECT_EQ(rig.save(page_of(200, 100, 1000)), Outcome::done);
}

TEST(Keeper, AJournalOfMostlyGarbageIsWrittenAnew) {
  KeeperRig rig;
  const Given given = named(page_of(1, 300), "x");
  Page page;
  ASSERT_EQ(rig.save(given, &page), Outcome::done);
  std::uintmax_t largest = 0;
  for (int i = 0; i < 1500; ++i) {
    ASSERT_EQ(rig.keeper->pin(page.id, i % 2 == 0, page), Outcome::done);
    largest = std::max(largest, std::filesystem::file_size(rig.folder / "journal"));
  }
  EXPECT_LT(std::filesystem::file_size(rig.folder / "journal"), largest);
  rig.open();
  EXPECT_EQ(rig.check(given), Outcome::done);
  EXPECT_EQ(rig.keeper->find({}, "x")->id, page.id);
}

TEST(Keeper, GcRemovesWhatNothingRefersToAndMovesWhatIsNotOurs) {
  KeeperRig rig;
  const Given given = page_of(1, 300);
  ASSERT_EQ(rig.save(given), Outcome::done);
  TestFolder::write(rig.folder / "blocks/00112233445566778899aabbccddeeff", "orphan");
  TestFolder::write(rig.folder / "pages/00112233445566778899aabbccddeeff.part", "unfinished");
  TestFolder::write(rig.folder / "blocks/notes.txt", "foreign");
  std::filesystem::create_symlink(rig.folder.canary(), rig.folder / "pages/link");
  const GcReport gc = rig.keeper->gc();
  EXPECT_EQ(gc.removed, 2U);
  EXPECT_EQ(gc.quarantined, 2U);
  EXPECT_EQ(rig.folder.files("quarantine").size(), 2U);
  EXPECT_EQ(rig.folder.files("blocks").size(), 2U);
  EXPECT_EQ(rig.check(given), Outcome::done);
}

TEST(KeeperDeath, DraftsOutsideTheLimitsAreOurBug) {
  KeeperRig rig;
  const Given bad = named(page_of(1, 300), "../x");
  EXPECT_DEATH((void)rig.save(bad), "names are checked at the edge");
}

}  // namespace
}  // namespace fermata::store
