// A folder for one test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace fermata::store {

// An empty folder that goes with this object, and beside it a file that nobody may touch.
class TestFolder {
 public:
  TestFolder() {
    // In memory where there is such a place: syncs cost nothing there, and mean the same.
    const std::filesystem::path memory = "/dev/shm";
    const bool there = access(memory.c_str(), W_OK) == 0;
    const auto parent = there ? memory : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "fermata-store-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) base_ = pattern;
    std::ofstream(canary()) << "untouched";
  }
  ~TestFolder() {
    EXPECT_EQ(text_of(canary()), "untouched");
    std::filesystem::remove_all(base_);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path() const { return (base_ / "pages").string(); }
  std::filesystem::path operator/(const std::string& name) const { return base_ / "pages" / name; }
  std::filesystem::path canary() const { return base_ / "canary"; }
  std::filesystem::path outside() const { return base_; }

  static std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static void write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }
  // Files of one of its folders.
  std::vector<std::filesystem::path> files(const std::string& inside) const {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::directory_iterator(*this / inside)) {
      out.push_back(entry.path());
    }
    return out;
  }

 private:
  std::filesystem::path base_;
};

}  // namespace fermata::store
