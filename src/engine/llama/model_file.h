// The file, or the parts of a file, that a model was loaded from. Kept open, so that a model whose
// file is renamed, replaced or deleted while it serves still knows what it is.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "engine/model.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fermata::engine::llama {

// SHA-256 over a few pieces of bytes, in order; for identities, not for secrets.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  Digest& add(const void* data, std::size_t bytes);
  Digest& add(const std::string& text);  // With its length, so that "ab","c" is not "a","bc".
  Digest& add(std::int64_t number);
  Fingerprint finish();

 private:
  void* state_;
};

// All methods are const and thread-safe.
class ModelFile {
 public:
  // `path` is a GGUF file; "name-00001-of-00003.gguf" stands for all its parts.
  // Error: one line (absent, unreadable, no GGUF file).
  static Result<std::unique_ptr<ModelFile>, std::string> open(const std::string& path);
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  // Of the sizes, the first 4 MiB and samples all over the rest: a few milliseconds, and enough to
  // tell models apart. Constant.
  const Fingerprint& sample() const { return sample_; }

  // Of every byte. The first call reads it all, later ones answer the same. A file that cannot be
  // read to its end gets a number that nothing else has.
  const Fingerprint& content() const;

 private:
  struct Part {
    int descriptor = -1;
    std::int64_t bytes = 0;
  };
  ModelFile() = default;
  void take_sample();
  std::optional<Fingerprint> read_all() const;

  std::vector<Part> parts_;
  Fingerprint sample_{};
  mutable std::once_flag content_once_;
  mutable Fingerprint content_{};
};

}  // namespace fermata::engine::llama
