// Files of one folder, by handles that no symlink and no path of a client can lead astray. Every
// name is one component; results are 0 or an errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fermata::store {

enum class FileOp : std::uint8_t { create, write, sync, rename, remove, make_folder, truncate };

// Asked before each change of a file: tests stop, shorten or refuse writes here. Thread-safe.
class FileGate {
 public:
  virtual ~FileGate() = default;
  // 0: go on. Else the errno that the operation ends with, unless it is a write whose `bytes` was
  // lowered: so many are written before it fails.
  virtual int ask(FileOp op, std::size_t& bytes) = 0;
};

// A file descriptor. Move-only.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

using Pieces = std::span<const std::span<const std::byte>>;

// Reads at most `into.size()` bytes at `offset`; `got` is less at the file's end.
int read_at(const Fd& file, std::span<std::byte> into, std::uint64_t offset, std::size_t& got);

// A folder by its handle. Thread-safe once opened. Move-only.
class Folder {
 public:
  Folder() = default;

  // The last component of the path must be a folder, not a symlink to one. With `make` it is made
  // (mode 0700) where it is missing; its parent must be there.
  static int open(const std::string& path, bool make, std::shared_ptr<FileGate> gate, Folder& out);
  int open_inside(const char* name, bool make, Folder& out) const;

  // A regular file, never through a symlink: ELOOP; EINVAL where it is anything else.
  int open_file(const std::string& name, int flags, Fd& out, std::uint64_t& size) const;
  // All of a regular file of at most `most` bytes (else EFBIG).
  int read_file(const std::string& name, std::size_t most, std::vector<std::byte>& out) const;
  // A whole file under its name or, after any failure or a crash, what was there before. Its name
  // is durable after sync(). Not two of one name at once.
  int write_file(const std::string& name, Pieces pieces) const;
  // At the file's end; on failure it may have grown by some of the bytes.
  int append(const Fd& file, std::span<const std::byte> bytes) const;
  int sync_file(const Fd& file) const;
  int truncate(const Fd& file, std::uint64_t size) const;
  int remove(const std::string& name) const;
  int move(const std::string& name, const Folder& to, const std::string& new_name) const;
  // The folder's own entries.
  int sync() const;
  // Takes the lock file; EWOULDBLOCK: another process (or keeper) has it. Held as long as `out`.
  int lock(const char* name, bool read_only, Fd& out) const;

  // Every name in it but . and .., in no order.
  int names(std::vector<std::string>& out) const;
  // Size of a regular file; as open_file.
  int size_of(const std::string& name, std::uint64_t& size) const;
  bool is_open() const { return fd_.is_open(); }

 private:
  int ask(FileOp op) const;
  int write_all(int fd, std::span<const std::byte> bytes) const;

  Fd fd_;
  std::shared_ptr<FileGate> gate_;
};

// What write_file() calls its unfinished files: never the name of a finished one.
bool is_temporary(const std::string& name);

}  // namespace fermata::store
