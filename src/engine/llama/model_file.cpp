#include "engine/llama/model_file.h"

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

namespace fermata::engine::llama {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
constexpr std::size_t sample_bytes = std::size_t{4} << 10;
constexpr std::int64_t samples = 64;
constexpr int most_parts = 4096;

// Reads as much of [offset, offset + into.size()) as the file has; empty on a read error.
std::optional<std::size_t> read_at(int descriptor, std::int64_t offset, std::span<char> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(descriptor, into.data() + done, into.size() - done,
                              static_cast<off_t>(offset + static_cast<std::int64_t>(done)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

// "x-00001-of-00003.gguf" gives the names of all three; any other name stands for itself.
std::vector<std::string> part_names(const std::string& path) {
  int first = 0;
  int count = 0;
  char end = 0;
  constexpr std::size_t tail = 20;  // "-00001-of-00003.gguf"
  if (path.size() <= tail) return {path};
  const std::string suffix = path.substr(path.size() - tail);
  if (std::sscanf(suffix.c_str(), "-%5d-of-%5d.ggu%c", &first, &count, &end) != 3 || end != 'f' ||
      first != 1 || count < 1 || count > most_parts) {
    return {path};
  }
  std::vector<std::string> names;
  const std::string prefix = path.substr(0, path.size() - tail);
  for (int i = 1; i <= count; ++i) {
    char part[64];
    std::snprintf(part, sizeof(part), "-%05d-of-%05d.gguf", i, count);
    names.push_back(prefix + part);
  }
  return names;
}

std::string why(int error) { return std::strerror(error); }

}  // namespace

Digest::Digest() : state_(EVP_MD_CTX_new()) {
  FERMATA_CHECK(state_ != nullptr, "no memory for a digest");
  EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(state_), EVP_sha256(), nullptr);
}

Digest::~Digest() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(state_)); }

Digest& Digest::add(const void* data, std::size_t bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(state_), data, bytes);
  return *this;
}

Digest& Digest::add(const std::string& text) {
  return add(static_cast<std::int64_t>(text.size())).add(text.data(), text.size());
}

Digest& Digest::add(std::int64_t number) { return add(&number, sizeof(number)); }

Fingerprint Digest::finish() {
  Fingerprint out{};
  unsigned bytes = 0;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(state_), reinterpret_cast<unsigned char*>(out.data()),
                     &bytes);
  return out;
}

Result<std::unique_ptr<ModelFile>, std::string> ModelFile::open(const std::string& path) {
  std::unique_ptr<ModelFile> file(new ModelFile);
  for (const std::string& name : part_names(path)) {
    Part part;
    part.descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (part.descriptor < 0) return Err{"cannot open '" + name + "': " + why(errno)};
    file->parts_.push_back(part);
    struct stat facts {};
    if (::fstat(part.descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
      return Err{"'" + name + "' is not a regular file"};
    }
    file->parts_.back().bytes = facts.st_size;
    char magic[4] = {};
    const auto got = read_at(part.descriptor, 0, magic);
    if (!got) return Err{"cannot read '" + name + "': " + why(errno)};
    if (*got != sizeof(magic) || std::memcmp(magic, "GGUF", sizeof(magic)) != 0) {
      return Err{"'" + name + "' is not a GGUF file; convert the model to GGUF"};
    }
  }
  file->take_sample();
  return file;
}

ModelFile::~ModelFile() {
  for (const Part& part : parts_) ::close(part.descriptor);
}

void ModelFile::take_sample() {
  Digest digest;
  std::vector<char> buffer(chunk_bytes);
  const auto add = [&](const Part& part, std::int64_t offset, std::size_t bytes) {
    const auto got = read_at(part.descriptor, offset, std::span(buffer.data(), bytes));
    digest.add(buffer.data(), got.value_or(0));
  };
  for (const Part& part : parts_) {
    digest.add(part.bytes);
    add(part, 0, chunk_bytes);
    for (std::int64_t i = 0; i < samples; ++i) {
      add(part, part.bytes / samples * i, sample_bytes);
    }
  }
  sample_ = digest.finish();
}

std::optional<Fingerprint> ModelFile::read_all() const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  FERMATA_CHECK(state != nullptr, "no memory for a checksum");
  XXH3_128bits_reset(state.get());
  Digest digest;
  std::vector<char> buffer(chunk_bytes);
  for (const Part& part : parts_) {
    std::int64_t at = 0;
    while (at < part.bytes) {
      const auto got = read_at(part.descriptor, at, buffer);
      if (!got || *got == 0) return std::nullopt;
      XXH3_128bits_update(state.get(), buffer.data(), *got);
      at += static_cast<std::int64_t>(*got);
    }
    digest.add(part.bytes);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  digest.add(&hash, sizeof(hash));
  return digest.finish();
}

const Fingerprint& ModelFile::content() const {
  std::call_once(content_once_, [this] {
    if (const auto read = read_all()) {
      content_ = *read;
      return;
    }
    log_warn("the model file cannot be read to its end: what it left in stores is not found again");
    Digest unlike_any;
    for (int i = 0; i < 4; ++i) unlike_any.add(static_cast<std::int64_t>(system_random()));
    content_ = unlike_any.finish();
  });
  return content_;
}

}  // namespace fermata::engine::llama
