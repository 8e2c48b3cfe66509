#include "base/log.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fermata {
namespace {

// The logger is the process's own: each test starts and stops it.
class Log : public ::testing::Test {
 protected:
  Log() : file_(::testing::TempDir() + "fermata_log_test_" + std::to_string(getpid())) {}
  void TearDown() override {
    stop_logging();
    std::filesystem::remove(file_);
  }

  void start(LogLevel level, bool disabled = false) {
    ASSERT_TRUE(
        start_logging({.level = level, .file = file_, .timestamps = false, .disabled = disabled}));
  }
  // Ends logging: what is queued is written.
  std::string written() {
    stop_logging();
    std::ostringstream out;
    out << std::ifstream(file_).rdbuf();
    return out.str();
  }

  const std::string file_;
};

TEST_F(Log, WritesEachLineOnceInOrder) {
  start(LogLevel::debug);
  log_error("first {}", 1);
  log_warn("second {}", "two");
  log_info("third");
  log_debug("fourth");
  EXPECT_EQ(written(), "E first 1\nW second two\nI third\nD fourth\n");
}

TEST_F(Log, LinesCanBeBare) {
  ASSERT_TRUE(start_logging({.file = file_, .timestamps = false, .prefix = false}));
  log_warn("only the words");
  EXPECT_EQ(written(), "only the words\n");
}

TEST_F(Log, JsonLinesAreWholeWhateverIsInThem) {
  ASSERT_TRUE(start_logging({.file = file_, .jsonl = true, .colors = LogColors::on}));
  log_warn("a \"quoted\" \\ line\nand {}", "\x1b[1m\xC3\xA4\xFF");
  const std::string line = written();
  EXPECT_TRUE(line.starts_with(R"({"time":")")) << line;
  const std::string rest = R"(","level":"warning","message":"a \"quoted\" \\ line?and ?[1m???"})";
  EXPECT_TRUE(line.ends_with(rest + "\n")) << line;
}

TEST_F(Log, LevelHidesWhatIsBelowIt) {
  start(LogLevel::warn);
  EXPECT_TRUE(log_enabled(LogLevel::error));
  EXPECT_TRUE(log_enabled(LogLevel::warn));
  EXPECT_FALSE(log_enabled(LogLevel::info));
  EXPECT_FALSE(log_enabled(LogLevel::debug));
  log_info("hidden");
  log_warn("shown");
  EXPECT_EQ(written(), "W shown\n");
}

TEST_F(Log, DisabledWritesNothing) {
  start(LogLevel::debug, true);
  EXPECT_FALSE(log_enabled(LogLevel::error));
  log_error("hidden");
  EXPECT_EQ(written(), "");
}

TEST_F(Log, TextWithBracesIsNotAFormat) {
  start(LogLevel::info);
  log_line(LogLevel::info, "{} {0} {broken");
  EXPECT_EQ(written(), "I {} {0} {broken\n");
}

TEST_F(Log, GoesOnInAFileThatExists) {
  start(LogLevel::info);
  log_info("one");
  stop_logging();
  start(LogLevel::info);
  log_info("two");
  EXPECT_EQ(written(), "I one\nI two\n");
}

TEST_F(Log, TimestampsComeFirst) {
  ASSERT_TRUE(start_logging({.file = file_}));
  log_info("line");
  const std::string line = written();
  EXPECT_EQ(line.substr(line.size() - 7), "I line\n");
  EXPECT_EQ(line.substr(0, 2), "20");
  EXPECT_EQ(line.size(), std::string("2000-01-01 00:00:00.000 I line\n").size());
}

TEST_F(Log, NothingIsWrittenOrBrokenAfterTheEnd) {
  start(LogLevel::info);
  stop_logging();
  EXPECT_FALSE(log_enabled(LogLevel::error));
  log_error("nobody reads this");
  log_line(LogLevel::error, "nor this");
  EXPECT_EQ(written(), "");
}

TEST_F(Log, FileThatCannotBeOpenedIsToldAndLinesGoToStandardError) {
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(start_logging({.file = "/dev/null/no/folder", .timestamps = false}));
  log_info("still here");
  stop_logging();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "I still here\n");
}

TEST_F(Log, WithoutAFileLinesGoToStandardError) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  ASSERT_TRUE(start_logging({.file = "", .timestamps = false}));
  log_info("line");
  stop_logging();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "I line\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

// A log file stayed empty for minutes, until 4 kB had come together.
TEST_F(Log, LineIsInTheFileWithoutWaitingForMore) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  start(LogLevel::info);
  log_info("at once");
  pollfd ready{reader, POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 10'000), 1);
  char line[64] = {};
  EXPECT_EQ(read(reader, line, sizeof line - 1), 10);
  EXPECT_STREQ(line, "I at once\n");
  close(reader);
}

// In a process of its own, where nobody has called start_logging() before.
TEST(LogDeathTest, BeforeTheStartLinesGoToStandardError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        log_info("early line");
        log_debug("never shown");
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "early line\n$");
}

}  // namespace
}  // namespace fermata
