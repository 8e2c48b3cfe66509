// Where the library's log goes. Its callback is global and may come from any thread.
#pragma once

#include "base/log.h"

#include <string>
#include <string_view>

namespace fermata::engine::llama {

// Installs the callback. Lines of the library at `level` and above reach our log; lines that may
// quote a conversation (its debug level, libllama-common's own log) never do.
void route_library_log(LogLevel level);

// While alive, keeps the first error line that the library wrote on this thread: the reason of a
// failed load or build. Nests.
class LibraryErrors {
 public:
  // What of this thread still reaches the log. warnings: all but errors, which the caller reports;
  // nothing: for calls whose failure is an answer.
  enum class Echo : unsigned char { warnings, nothing };
  explicit LibraryErrors(Echo echo = Echo::warnings);
  ~LibraryErrors();
  LibraryErrors(const LibraryErrors&) = delete;
  LibraryErrors& operator=(const LibraryErrors&) = delete;

  // For the log callback: whether the line goes on to our log.
  bool take(bool is_error, std::string_view line);
  // One line without the library's function names; `otherwise` when there was none.
  std::string reason(const std::string& otherwise) const;

 private:
  LibraryErrors* outer_;
  Echo echo_;
  std::string first_;
};

}  // namespace fermata::engine::llama
