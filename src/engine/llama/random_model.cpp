#include "engine/llama/random_model.h"

#include "base/check.h"
#include "base/random.h"
#include "engine/llama/random_architecture.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gguf.h>
#include <unistd.h>
#include <xxhash.h>

namespace fermata::engine::llama {
namespace {

using Error = Err<std::string>;

struct Free {
  void operator()(gguf_context* g) const { gguf_free(g); }
  void operator()(ggml_context* c) const { ggml_free(c); }
};
using Gguf = std::unique_ptr<gguf_context, Free>;
using Ggml = std::unique_ptr<ggml_context, Free>;

// ---- Tokenizer ---------------------------------------------------------------------------------

constexpr std::int32_t token_normal = 1;  // token types of the GGUF format
constexpr std::int32_t token_unused = 5;
constexpr std::int32_t token_byte = 6;

// Collects what libllama would print, for as long as it lives.
class LogCapture {
 public:
  LogCapture() {
    ggml_log_get(&callback_, &user_data_);
    ggml_log_set(append, &first_line_);
  }
  ~LogCapture() { ggml_log_set(callback_, user_data_); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  // The first line, without the name of the function that says it.
  std::string trouble() const {
    const std::size_t colon = first_line_.find(": ");
    return colon == std::string::npos ? first_line_ : first_line_.substr(colon + 2);
  }

 private:
  static void append(ggml_log_level, const char* text, void* line) {
    auto& first_line = *static_cast<std::string*>(line);
    if (first_line.empty()) {
      first_line.assign(text, std::string_view(text).find_first_of('\n'));
    }
  }

  ggml_log_callback callback_ = nullptr;
  void* user_data_ = nullptr;
  std::string first_line_;
};

struct Tokenizer {
  Gguf metadata;                // nothing but tokenizer.* keys
  std::int64_t vocabulary = 0;  // with the unused tokens that fill it up
  std::vector<bool> silent;     // by token: never picked by greedy sampling
};

// An array of the file, or nothing when it is absent or of another type or length.
std::optional<std::int64_t> find_array(const gguf_context* file, const char* key, gguf_type type,
                                       std::size_t size) {
  const std::int64_t id = gguf_find_key(file, key);
  if (id < 0 || gguf_get_kv_type(file, id) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(file, id) != type || gguf_get_arr_n(file, id) != size) {
    return std::nullopt;
  }
  return id;
}

template <class T>
std::vector<T> copy_array(const gguf_context* file, std::int64_t id) {
  const auto* data = static_cast<const T*>(gguf_get_arr_data(file, id));
  return {data, data + gguf_get_arr_n(file, id)};
}

// Appends unused tokens until the vocabulary has `size`.
void fill_up(gguf_context* file, std::int64_t tokens_id, std::vector<std::int32_t>& types,
             std::optional<std::int64_t> scores_id, std::size_t size) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < gguf_get_arr_n(file, tokens_id); ++i) {
    texts.emplace_back(gguf_get_arr_str(file, tokens_id, i));
  }
  std::vector<float> scores;
  if (scores_id) {
    scores = copy_array<float>(file, *scores_id);
    scores.resize(size, 0);
    gguf_set_arr_data(file, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), size);
  }
  while (texts.size() < size) {
    texts.push_back("<|unused_" + std::to_string(texts.size()) + "|>");
  }
  types.resize(size, token_unused);
  std::vector<const char*> pointers;
  for (const std::string& text : texts) {
    pointers.push_back(text.c_str());
  }
  gguf_set_arr_str(file, "tokenizer.ggml.tokens", pointers.data(), size);
  gguf_set_arr_data(file, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), size);
}

Result<Tokenizer, std::string> read_tokenizer(const RandomModelSpec& spec) {
  const std::string& path = spec.tokenizer_from;
  Tokenizer out;
  {
    const LogCapture log;
    out.metadata.reset(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
    if (!out.metadata) {
      return Error{"cannot read the tokenizer of '" + path + "': " + log.trouble() +
                   "; name a GGUF model that has one"};
    }
  }
  gguf_context* file = out.metadata.get();
  for (std::int64_t i = gguf_get_n_kv(file) - 1; i >= 0; --i) {
    const std::string key = gguf_get_key(file, i);
    if (!key.starts_with("tokenizer.")) {
      gguf_remove_key(file, key.c_str());
    }
  }
  const std::int64_t tokens_id = gguf_find_key(file, "tokenizer.ggml.tokens");
  if (tokens_id < 0 || gguf_get_kv_type(file, tokens_id) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(file, tokens_id) != GGUF_TYPE_STRING ||
      gguf_get_arr_n(file, tokens_id) == 0) {
    return Error{"'" + path + "' has no list of tokens; name a model with a tokenizer"};
  }
  const std::size_t own = gguf_get_arr_n(file, tokens_id);
  const std::size_t size =
      spec.shape.vocabulary == 0 ? own : static_cast<std::size_t>(spec.shape.vocabulary);
  if (size < own) {
    return Error{"a vocabulary of " + std::to_string(size) + " is smaller than the " +
                 std::to_string(own) + " tokens of '" + path + "'"};
  }
  std::vector<std::int32_t> types(own, token_normal);
  if (const auto id = find_array(file, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, own)) {
    types = copy_array<std::int32_t>(file, *id);
  }
  if (size > own) {
    fill_up(file, tokens_id, types,
            find_array(file, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, own), size);
  }
  out.vocabulary = static_cast<std::int64_t>(size);
  for (const std::int32_t type : types) {
    out.silent.push_back(type != token_normal && type != token_byte);
  }
  return out;
}

// ---- File --------------------------------------------------------------------------------------

// A file that appears under its name only when it is complete and on disk.
class NewFile {
 public:
  static Result<NewFile, std::string> create(const std::string& path) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(path, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      return Error{"cannot write '" + path + "': it exists and is not a regular file"};
    }
    NewFile file(path);
    const int fd = ::open(file.part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
      file.part_.clear();
      return Error{file.trouble()};
    }
    file.fd_ = fd;
    return file;
  }
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        part_(std::exchange(other.part_, {})),
        fd_(std::exchange(other.fd_, -1)) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    if (!part_.empty()) {
      ::unlink(part_.c_str());
    }
  }

  Result<void, std::string> append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno != EINTR) {
        return Error{trouble()};
      }
      bytes = bytes.subspan(n < 0 ? 0 : static_cast<std::size_t>(n));
    }
    return {};
  }

  Result<void, std::string> publish() {
    if (::fsync(fd_) != 0 || ::close(std::exchange(fd_, -1)) != 0 ||
        std::rename(part_.c_str(), path_.c_str()) != 0) {
      return Error{trouble()};
    }
    part_.clear();
    return {};
  }

 private:
  explicit NewFile(const std::string& path)
      : path_(path), part_(path + "." + random_alphanumeric(8) + ".part") {}

  std::string trouble() const {
    return "cannot write '" + path_ + "': " + std::generic_category().message(errno);
  }

  std::string path_;
  std::string part_;  // empty: nothing to remove
  int fd_ = -1;
};

ggml_type stored_type(const RandomTensor& tensor, WeightType weight_type) {
  constexpr std::int64_t q8_block = 32;
  if (!tensor.is_matrix) {
    return GGML_TYPE_F32;
  }
  switch (weight_type) {
    case WeightType::f32:
      return GGML_TYPE_F32;
    case WeightType::f16:
      return GGML_TYPE_F16;
    case WeightType::q8_0:
      return tensor.columns % q8_block == 0 ? GGML_TYPE_Q8_0 : GGML_TYPE_F32;
  }
  check_failed("weight_type", "a weight type that does not exist", __FILE__, __LINE__);
}

std::size_t round_up(std::size_t size, std::size_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

// Draws, converts and writes tensor after tensor, a few megabytes at a time.
class Writer {
 public:
  Writer(NewFile& file, std::uint64_t seed, Bytes total, const RandomModelProgress& progress)
      : file_(file), seed_(seed), total_(total), progress_(progress) {}

  Result<void, std::string> append(std::span<const std::byte> bytes) {
    if (auto done = file_.append(bytes); !done) {
      return done;
    }
    written_ += Bytes(static_cast<std::int64_t>(bytes.size()));
    if (progress_) {
      progress_(written_, total_);
    }
    return {};
  }

  // `silent`: the rows that are zero, when the tensor has a row per token.
  Result<void, std::string> append(const RandomTensor& tensor, ggml_type type,
                                   std::size_t alignment, const std::vector<bool>& silent) {
    constexpr std::int64_t values_at_once = 1 << 20;
    Random random(XXH3_64bits_withSeed(tensor.name.data(), tensor.name.size(), seed_));
    const std::int64_t rows = std::max<std::int64_t>(tensor.rows, 1);
    const std::int64_t rows_at_once = std::max<std::int64_t>(values_at_once / tensor.columns, 1);
    const auto columns = static_cast<std::size_t>(tensor.columns);
    const std::size_t row_bytes = ggml_row_size(type, tensor.columns);
    for (std::int64_t first = 0; first < rows; first += rows_at_once) {
      const std::int64_t count = std::min(rows_at_once, rows - first);
      values_.resize(static_cast<std::size_t>(count) * columns);
      draw_weights(random, tensor.law, values_);
      for (std::int64_t i = 0; tensor.is_per_token && i < count; ++i) {
        if (silent.at(static_cast<std::size_t>(first + i))) {
          std::fill_n(values_.begin() + i * tensor.columns, columns, 0.0F);
        }
      }
      bytes_.resize(static_cast<std::size_t>(count) * row_bytes);
      ggml_quantize_chunk(type, values_.data(), bytes_.data(), 0, count, tensor.columns, nullptr);
      if (first + count == rows) {
        bytes_.resize(round_up(bytes_.size(), alignment));
      }
      if (auto done = append(bytes_); !done) {
        return done;
      }
    }
    return {};
  }

 private:
  NewFile& file_;
  std::uint64_t seed_;
  Bytes total_;
  Bytes written_;
  const RandomModelProgress& progress_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

// ---- Checks ------------------------------------------------------------------------------------

// What no model of this kind can have, or nothing.
std::optional<std::string> find_fault(const RandomModelSpec& spec) {
  const RandomModelShape& s = spec.shape;
  const auto within = [](std::int64_t value, std::int64_t low, std::int64_t high) {
    return value >= low && value <= high;
  };
  const bool two_kinds_of_layer =
      spec.kind == RandomModelKind::sliding_window || spec.kind == RandomModelKind::hybrid;
  const int layers_min = two_kinds_of_layer ? 2 : 1;
  if (!within(s.layers, layers_min, 256)) {
    return "layers must be from " + std::to_string(layers_min) + " to 256";
  }
  if (!within(s.width, 32, 16384) || s.width % 32 != 0) {
    return "width must be a multiple of 32, from 32 to 16384";
  }
  if (!within(s.vocabulary, 0, 1'000'000)) {
    return "vocabulary must be from 0 (the tokenizer's) to 1000000";
  }
  if (!within(s.context_length.value, 1, 1 << 24)) {
    return "context_length must be from 1 to 16777216";
  }
  if (spec.kind == RandomModelKind::recurrent) {
    return std::nullopt;
  }
  if (!within(s.heads, 1, s.width / 32) || s.width % (32 * s.heads) != 0) {
    return "width must be a multiple of 32 x heads";
  }
  if (!within(s.kv_heads, 1, s.heads) || s.heads % s.kv_heads != 0) {
    return "kv_heads must divide heads";
  }
  if (!within(s.feed_forward, 32, 65536) || s.feed_forward % 32 != 0) {
    return "feed_forward must be a multiple of 32, from 32 to 65536";
  }
  if (!within(s.sliding_window.value, 1, s.context_length.value)) {
    return "sliding_window must be from 1 to context_length";
  }
  return std::nullopt;
}

Ggml make_descriptor_pool(std::size_t tensors) {
  return Ggml(ggml_init(
      {.mem_size = ggml_tensor_overhead() * tensors, .mem_buffer = nullptr, .no_alloc = true}));
}

// The file's header: everything but the weights.
Gguf make_header(const RandomModelSpec& spec, const Tokenizer& tokenizer,
                 const std::vector<RandomTensor>& tensors) {
  Gguf header(gguf_init_empty());
  gguf_set_kv(header.get(), tokenizer.metadata.get());
  set_random_metadata(header.get(), spec, tokenizer.vocabulary);
  const Ggml pool = make_descriptor_pool(tensors.size());
  for (const RandomTensor& tensor : tensors) {
    const ggml_type type = stored_type(tensor, spec.weight_type);
    ggml_tensor* t = tensor.rows == 0
                         ? ggml_new_tensor_1d(pool.get(), type, tensor.columns)
                         : ggml_new_tensor_2d(pool.get(), type, tensor.columns, tensor.rows);
    ggml_set_name(t, tensor.name.c_str());
    gguf_add_tensor(header.get(), t);
  }
  return header;
}

}  // namespace

RandomModelSpec tiny_random_model(RandomModelKind kind, std::string tokenizer_from,
                                  std::uint64_t seed) {
  return {.kind = kind,
          .seed = seed,
          .shape = {},
          .weight_type = WeightType::f32,
          .tokenizer_from = std::move(tokenizer_from)};
}

RandomModelSpec bench_350m_model(std::string tokenizer_from, std::uint64_t seed) {
  return {.kind = RandomModelKind::dense,
          .seed = seed,
          .shape = {.layers = 24,
                    .width = 1024,
                    .heads = 16,
                    .kv_heads = 8,
                    .feed_forward = 2816,
                    .vocabulary = 32000,
                    .context_length = Tokens(32768)},
          .weight_type = WeightType::q8_0,
          .tokenizer_from = std::move(tokenizer_from)};
}

Result<RandomModelInfo, std::string> write_random_model(const RandomModelSpec& spec,
                                                        const std::string& path,
                                                        const RandomModelProgress& progress) {
  if (const auto fault = find_fault(spec)) {
    return Error{"cannot make this model: " + *fault};
  }
  const auto tokenizer = read_tokenizer(spec);
  if (!tokenizer) {
    return Error{tokenizer.error()};
  }
  const std::vector<RandomTensor> tensors = list_random_tensors(spec, tokenizer->vocabulary);
  const Gguf header = make_header(spec, *tokenizer, tensors);
  const std::size_t alignment = gguf_get_alignment(header.get());

  std::vector<std::byte> head(gguf_get_meta_size(header.get()));
  gguf_get_meta_data(header.get(), head.data());
  RandomModelInfo info{.parameters = 0, .file_size = Bytes(static_cast<std::int64_t>(head.size()))};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    info.parameters += tensors[i].columns * std::max<std::int64_t>(tensors[i].rows, 1);
    const std::size_t size = gguf_get_tensor_size(header.get(), static_cast<std::int64_t>(i));
    info.file_size += Bytes(static_cast<std::int64_t>(round_up(size, alignment)));
  }

  auto file = NewFile::create(path);
  if (!file) {
    return Error{file.error()};
  }
  Writer writer(*file, spec.seed, info.file_size, progress);
  auto done = writer.append(head);
  for (std::size_t i = 0; done && i < tensors.size(); ++i) {
    done =
        writer.append(tensors[i], gguf_get_tensor_type(header.get(), static_cast<std::int64_t>(i)),
                      alignment, tokenizer->silent);
  }
  if (done) {
    done = file->publish();
  }
  if (!done) {
    return Error{done.error()};
  }
  return info;
}

}  // namespace fermata::engine::llama
