// A folder for one measurement, and files that the page cache does not hold.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <memory>
#include <string>

namespace fermata::bench {

// Goes with this object, and all that lies in it.
class ScratchFolder {
 public:
  // A new one where the system keeps temporary files. Error: one line.
  static Result<std::unique_ptr<ScratchFolder>, std::string> make();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Makes its files durable and asks the system to forget them. Answers the share of their bytes
  // that memory holds all the same. Error: one line.
  Result<double, std::string> push_out() const;

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace fermata::bench
