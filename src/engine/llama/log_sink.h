// Where the library's log goes. Its callback is global and may come from any thread.
#pragma once

#include "base/log.h"

#include <string>

namespace fermata::engine::llama {

// Installs the callback. Lines of the library at `level` and above reach our log; lines that may
// quote a conversation (its debug level, libllama-common's own log) never do.
void route_library_log(LogLevel level);

// While alive, keeps the first error line that the library wrote on this thread: the reason of a
// failed load or build. Does not nest.
class LibraryErrors {
 public:
  LibraryErrors();
  ~LibraryErrors();
  LibraryErrors(const LibraryErrors&) = delete;
  LibraryErrors& operator=(const LibraryErrors&) = delete;

  // One line without the library's function names; `otherwise` when there was none.
  std::string reason(const std::string& otherwise) const;

 private:
  std::string first_;
};

}  // namespace fermata::engine::llama
