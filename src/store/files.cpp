#include "store/files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fermata::store {
namespace {

constexpr std::string_view temporary_suffix = ".part";
constexpr mode_t file_mode = 0600;
constexpr mode_t folder_mode = 0700;

int folder_at(int parent, const char* name, Fd& out) {
  const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  out = Fd(fd);
  return 0;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

int read_at(const Fd& file, std::span<std::byte> into, std::uint64_t offset, std::size_t& got) {
  got = 0;
  while (got < into.size()) {
    const ssize_t n =
        pread(file.get(), into.data() + got, into.size() - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return 0;
}

int Folder::ask(FileOp op) const {
  std::size_t none = 0;
  return gate_ ? gate_->ask(op, none) : 0;
}

int Folder::open(const std::string& path, bool make, std::shared_ptr<FileGate> gate, Folder& out) {
  out.gate_ = std::move(gate);
  // A slash at the end would follow a symlink.
  std::string plain = path;
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  int error = folder_at(AT_FDCWD, plain.c_str(), out.fd_);
  if (error != ENOENT || !make) return error;
  error = out.ask(FileOp::make_folder);
  if (error != 0) return error;
  if (mkdir(plain.c_str(), folder_mode) != 0 && errno != EEXIST) return errno;
  return folder_at(AT_FDCWD, plain.c_str(), out.fd_);
}

int Folder::open_inside(const char* name, bool make, Folder& out) const {
  out.gate_ = gate_;
  int error = folder_at(fd_.get(), name, out.fd_);
  if (error != ENOENT || !make) return error;
  error = ask(FileOp::make_folder);
  if (error != 0) return error;
  if (mkdirat(fd_.get(), name, folder_mode) != 0 && errno != EEXIST) return errno;
  return folder_at(fd_.get(), name, out.fd_);
}

int Folder::open_file(const std::string& name, int flags, Fd& out, std::uint64_t& size) const {
  // O_NONBLOCK: a pipe in the place of a file must not make the open wait.
  const int all = flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  if ((flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR)) != 0) {
    const int error = ask(FileOp::create);
    if (error != 0) return error;
  }
  const int fd = openat(fd_.get(), name.c_str(), all, file_mode);
  if (fd < 0) return errno == ENXIO ? EINVAL : errno;
  Fd file(fd);
  struct stat status {};
  if (fstat(fd, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  size = static_cast<std::uint64_t>(status.st_size);
  out = std::move(file);
  return 0;
}

int Folder::read_file(const std::string& name, std::size_t most,
                      std::vector<std::byte>& out) const {
  Fd file;
  std::uint64_t size = 0;
  int error = open_file(name, O_RDONLY, file, size);
  if (error != 0) return error;
  if (size > most) return EFBIG;
  out.resize(static_cast<std::size_t>(size));
  std::size_t got = 0;
  error = read_at(file, out, 0, got);
  out.resize(got);
  return error;
}

int Folder::write_all(int fd, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    std::size_t allowed = bytes.size();
    const int refused = gate_ ? gate_->ask(FileOp::write, allowed) : 0;
    std::span<const std::byte> now = bytes.first(std::min(allowed, bytes.size()));
    if (refused != 0 && allowed >= bytes.size()) return refused;
    while (!now.empty()) {
      const ssize_t n = ::write(fd, now.data(), now.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno;
      now = now.subspan(static_cast<std::size_t>(n));
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    if (refused != 0) return refused;
  }
  return 0;
}

int Folder::write_file(const std::string& name, Pieces pieces) const {
  const std::string unfinished = name + std::string(temporary_suffix);
  Fd file;
  std::uint64_t size = 0;
  int error = remove(unfinished);  // Of an earlier, unfinished write.
  if (error != 0 && error != ENOENT) return error;
  error = open_file(unfinished, O_WRONLY | O_CREAT | O_EXCL, file, size);
  if (error != 0) return error;
  for (std::size_t i = 0; i < pieces.size() && error == 0; ++i) {
    error = write_all(file.get(), pieces[i]);
  }
  if (error == 0) error = sync_file(file);
  if (error == 0) error = ask(FileOp::rename);
  if (error == 0 && renameat(fd_.get(), unfinished.c_str(), fd_.get(), name.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) remove(unfinished);
  return error;
}

int Folder::append(const Fd& file, std::span<const std::byte> bytes) const {
  return write_all(file.get(), bytes);
}

int Folder::sync_file(const Fd& file) const {
  const int refused = ask(FileOp::sync);
  if (refused != 0) return refused;
  return fdatasync(file.get()) == 0 ? 0 : errno;
}

int Folder::truncate(const Fd& file, std::uint64_t size) const {
  const int refused = ask(FileOp::truncate);
  if (refused != 0) return refused;
  return ftruncate(file.get(), static_cast<off_t>(size)) == 0 ? 0 : errno;
}

int Folder::remove(const std::string& name) const {
  const int refused = ask(FileOp::remove);
  if (refused != 0) return refused;
  return unlinkat(fd_.get(), name.c_str(), 0) == 0 ? 0 : errno;
}

int Folder::move(const std::string& name, const Folder& to, const std::string& new_name) const {
  const int refused = ask(FileOp::rename);
  if (refused != 0) return refused;
  const int done = renameat(fd_.get(), name.c_str(), to.fd_.get(), new_name.c_str());
  return done == 0 ? 0 : errno;
}

int Folder::sync() const {
  const int refused = ask(FileOp::sync);
  if (refused != 0) return refused;
  return fsync(fd_.get()) == 0 ? 0 : errno;
}

int Folder::lock(const char* name, bool read_only, Fd& out) const {
  std::uint64_t size = 0;
  const int error = open_file(name, read_only ? O_RDONLY : O_RDWR | O_CREAT, out, size);
  if (error != 0) return error;
  const int how = read_only ? LOCK_SH : LOCK_EX;
  return flock(out.get(), how | LOCK_NB) == 0 ? 0 : errno;
}

int Folder::names(std::vector<std::string>& out) const {
  out.clear();
  const int fd = openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd), closedir);
  if (!stream) {
    const int error = errno;
    ::close(fd);
    return error;
  }
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
}

int Folder::size_of(const std::string& name, std::uint64_t& size) const {
  struct stat status {};
  if (fstatat(fd_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (S_ISLNK(status.st_mode)) return ELOOP;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  size = static_cast<std::uint64_t>(status.st_size);
  return 0;
}

bool is_temporary(const std::string& name) { return name.ends_with(temporary_suffix); }

}  // namespace fermata::store
