// Keys from files.
#include "app/files.h"

#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace fermata::app {
namespace {

std::string file_with(const std::string& content) {
  const std::string path = testing::TempDir() + "fermata_files_test_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(Files, KeysAreTrimmedLines) {
  const auto keys = read_keys(file_with("\r\n first \r\n\n\tsecond key\nlast"));
  ASSERT_TRUE(keys.ok()) << keys.error();
  EXPECT_EQ(*keys, (std::vector<std::string>{"first", "second key", "last"}));
}

TEST(Files, WhatCannotBeReadIsToldWithTheMend) {
  EXPECT_EQ(read_text("--x", "/nowhere/file").error(),
            "--x: cannot read '/nowhere/file': No such file or directory; name a file");
  const std::string folder = testing::TempDir();
  EXPECT_EQ(read_text("--x", folder).error(),
            "--x: cannot read '" + folder + "': it is a folder; name a file");
  EXPECT_NE(read_text("--x", file_with("")).error().find("it is empty"), std::string::npos);
  EXPECT_NE(read_keys(file_with(" \n\n")).error().find("no key in"), std::string::npos);
  EXPECT_NE(read_text("--x", file_with(std::string(1'100'000, 'x'))).error().find("1048576 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace fermata::app
