#include "engine/llama/state_format.h"

#include <cstring>
#include <utility>

namespace fermata::engine::llama {
namespace {

constexpr std::uint32_t magic = 0xaf143cd8;
constexpr std::size_t extension_bytes = 12;
constexpr std::uint32_t most_layers = 1024;
constexpr float most_f16 = 65504;
constexpr std::uint16_t most_bf16 = 0x4780;  // The next above it.

// Reads little-endian values and never beyond the end: `bad` once something was missing.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  template <class T>
  T next() {
    T value{};
    if (at_ > bytes_.size() || bytes_.size() - at_ < sizeof(T)) {
      bad_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  void skip(std::uint64_t count) {
    if (at_ > bytes_.size() || bytes_.size() - at_ < count) {
      bad_ = true;
    } else {
      at_ += static_cast<std::size_t>(count);
    }
  }
  bool bad() const { return bad_; }
  std::size_t at() const { return at_; }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
  bool bad_ = false;
};

class Writer {
 public:
  template <class T>
  void put(T value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
  }
  void zeros(std::int64_t count) { bytes_.resize(bytes_.size() + static_cast<std::size_t>(count)); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

std::optional<ggml_type> known_type(std::int32_t number) {
  if (number < 0 || number >= GGML_TYPE_COUNT) return std::nullopt;
  const auto type = static_cast<ggml_type>(number);
  if (ggml_blck_size(type) < 1 || ggml_type_size(type) == 0) return std::nullopt;
  return type;
}

// Elements in a row of that many bytes; empty when they are no whole blocks.
std::optional<std::int64_t> width_of(ggml_type type, std::uint64_t bytes) {
  const std::uint64_t block = ggml_type_size(type);
  if (bytes == 0 || bytes % block != 0 || bytes > (std::uint64_t{1} << 32)) return std::nullopt;
  return static_cast<std::int64_t>(bytes / block) * ggml_blck_size(type);
}

struct Rows {
  ggml_type type;
  std::int64_t width;
};

// Rows of K, or of V that is not transposed: type, bytes of a row, the rows.
std::optional<Rows> read_rows(Reader& in, std::uint32_t cells) {
  const auto type = known_type(in.next<std::int32_t>());
  const auto bytes = in.next<std::uint64_t>();
  if (in.bad() || !type) return std::nullopt;
  const auto width = width_of(*type, bytes);
  if (!width) return std::nullopt;
  in.skip(bytes * cells);
  return Rows{*type, *width};
}

// Columns of a transposed V: type, bytes of an element, elements, the columns.
std::optional<Rows> read_columns(Reader& in, std::uint32_t cells) {
  const auto type = known_type(in.next<std::int32_t>());
  const auto element = in.next<std::uint32_t>();
  const auto width = in.next<std::uint32_t>();
  if (in.bad() || !type || element != ggml_type_size(*type)) return std::nullopt;
  in.skip(std::uint64_t{element} * width * cells);
  return Rows{*type, width};
}

// All layers of a cache have the same types.
bool same_type(const LayerWidths& layer, const CacheShape& shape, ggml_type before,
               ggml_type found) {
  return &layer == &shape.layers.front() || before == found;
}

bool read_layers(Reader& in, std::uint32_t cells, CacheShape& shape) {
  const auto transposed = in.next<std::uint32_t>();
  const auto layers = in.next<std::uint32_t>();
  if (in.bad() || transposed > 1 || layers == 0 || layers > most_layers) return false;
  shape.v_transposed = transposed == 1;
  shape.layers.assign(layers, LayerWidths{});
  for (LayerWidths& layer : shape.layers) {
    const auto rows = read_rows(in, cells);
    if (!rows || !same_type(layer, shape, shape.k, rows->type)) return false;
    layer.k = rows->width;
    shape.k = rows->type;
  }
  // A cache of latent attention ends here, and only such a cache can end the state here.
  if (in.at_end()) return !in.bad();
  for (LayerWidths& layer : shape.layers) {
    const auto rows = shape.v_transposed ? read_columns(in, cells) : read_rows(in, cells);
    if (!rows || !same_type(layer, shape, shape.v, rows->type)) return false;
    layer.v = rows->width;
    shape.v = rows->type;
  }
  return !in.bad();
}

bool try_read(Reader& in, bool extension, CacheShape& shape) {
  const auto streams = in.next<std::uint32_t>();
  const auto cells = in.next<std::uint32_t>();
  if (in.bad() || streams != 1 || cells == 0) return false;
  const std::uint64_t cell = 12 + (extension ? extension_bytes : 0);
  in.skip(cell * cells);
  shape.cell_extension = extension;
  return read_layers(in, cells, shape);
}

template <class T, class Good>
bool all_numbers(std::span<const std::byte> bytes, Good good) {
  bool all = true;
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T number;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    all &= good(number);
  }
  return all;
}

bool are_finite(ggml_type type, std::span<const std::byte> bytes) {
  switch (type) {
    case GGML_TYPE_F16:
      return all_numbers<std::uint16_t>(bytes, [](auto n) { return (n & 0x7c00) != 0x7c00; });
    case GGML_TYPE_BF16:
      return all_numbers<std::uint16_t>(bytes, [](auto n) { return (n & 0x7fff) <= most_bf16; });
    case GGML_TYPE_F32:
      return all_numbers<float>(bytes, [](float n) { return n >= -most_f16 && n <= most_f16; });
    default:  // The scales of packed numbers are half floats.
      return ggml_validate_row_data(type, bytes.data(), bytes.size());
  }
}

std::string find_width_fault(const char* field, ggml_type type, std::int64_t width,
                             const char* what) {
  const std::int64_t block = ggml_blck_size(type);
  if (width % block == 0) return "";
  return std::string(field) + " " + ggml_type_name(type) + " packs " + std::to_string(block) +
         " numbers, which does not divide the model's " + what + " of " + std::to_string(width) +
         "; use f16";
}

}  // namespace

std::string find_type_fault(const CacheShape& shape, std::int64_t head_k, std::int64_t head_v) {
  std::string fault = find_width_fault("cache_type_k", shape.k, head_k, "head size");
  if (fault.empty()) fault = find_width_fault("cache_type_v", shape.v, head_v, "head size");
  for (const LayerWidths& layer : shape.layers) {
    if (fault.empty()) fault = find_width_fault("cache_type_k", shape.k, layer.k, "row");
    if (fault.empty()) fault = find_width_fault("cache_type_v", shape.v, layer.v, "row");
  }
  return fault;
}

std::int64_t row_bytes(ggml_type type, std::int64_t width) {
  const std::int64_t block = ggml_blck_size(type);
  return (width + block - 1) / block * static_cast<std::int64_t>(ggml_type_size(type));
}

Bytes CacheShape::cell_bytes() const {
  std::int64_t bytes = 0;
  for (const LayerWidths& layer : layers) {
    bytes += row_bytes(k, layer.k) + row_bytes(v, layer.v);
  }
  return Bytes(bytes);
}

std::optional<CacheShape> read_cache(std::span<const std::byte> state, std::size_t& offset) {
  for (const bool extension : {false, true}) {
    Reader in(state, offset);
    CacheShape shape;
    if (try_read(in, extension, shape)) {
      offset = in.at();
      return shape;
    }
  }
  return std::nullopt;
}

std::size_t CacheShape::state_bytes(Tokens cells) const {
  const std::int64_t cell = 12 + (cell_extension ? std::int64_t{extension_bytes} : 0);
  const std::int64_t layer_heads = static_cast<std::int64_t>(layers.size()) * 24;
  return state_header_bytes + 8 + 8 +
         static_cast<std::size_t>(layer_heads + cells.value * (cell + cell_bytes().value));
}

std::vector<std::byte> CacheShape::one_cell() const {
  Writer out;
  out.put(magic);
  out.put(std::int32_t{0});   // sequence
  out.put(std::uint32_t{1});  // streams
  out.put(std::uint32_t{1});  // cells
  out.put(std::int32_t{0});   // position
  out.put(std::uint32_t{1});  // owners
  if (cell_extension) out.zeros(extension_bytes);
  out.put(std::int32_t{0});  // owner
  out.put(std::uint32_t{v_transposed ? 1U : 0U});
  out.put(static_cast<std::uint32_t>(layers.size()));
  for (const LayerWidths& layer : layers) {
    out.put(static_cast<std::int32_t>(k));
    out.put(static_cast<std::uint64_t>(row_bytes(k, layer.k)));
    out.zeros(row_bytes(k, layer.k));
  }
  for (const LayerWidths& layer : layers) {
    out.put(static_cast<std::int32_t>(v));
    if (v_transposed) {
      out.put(static_cast<std::uint32_t>(ggml_type_size(v)));
      out.put(static_cast<std::uint32_t>(layer.v));
    } else {
      out.put(static_cast<std::uint64_t>(row_bytes(v, layer.v)));
    }
    out.zeros(row_bytes(v, layer.v));
  }
  return out.take();
}

bool CacheShape::is_finite(std::span<const std::byte> state, Tokens cells) const {
  constexpr std::size_t rows_head_bytes = 12;
  const std::size_t cell = 12 + (cell_extension ? extension_bytes : 0);
  const auto count = static_cast<std::size_t>(cells.value);
  std::size_t at = state_header_bytes + 8 + cell * count + 8;
  const auto next_is_finite = [&](ggml_type type, std::int64_t width) {
    const auto bytes = static_cast<std::size_t>(row_bytes(type, width)) * count;
    const bool good = are_finite(type, state.subspan(at + rows_head_bytes, bytes));
    at += rows_head_bytes + bytes;
    return good;
  };
  bool all = true;
  for (const LayerWidths& layer : layers) all &= next_is_finite(k, layer.k);
  for (const LayerWidths& layer : layers) {
    if (at < state.size()) all &= next_is_finite(v, layer.v);
  }
  return all;
}

bool CacheShape::holds(std::span<const std::byte> state, Tokens begin, Tokens end) const {
  const Tokens count = end - begin;
  if (state.size() != state_bytes(count)) return false;
  Reader in(state, 0);
  if (in.next<std::uint32_t>() != magic) return false;
  in.skip(4);  // The sequence it was taken from.
  if (in.next<std::uint32_t>() != 1) return false;
  if (in.next<std::uint32_t>() != static_cast<std::uint64_t>(count.value)) return false;
  std::vector<bool> seen(static_cast<std::size_t>(count.value));
  for (std::int64_t i = 0; i < count.value; ++i) {
    const std::int64_t at = in.next<std::int32_t>() - begin.value;
    if (at < 0 || at >= count.value || seen[static_cast<std::size_t>(at)]) return false;
    seen[static_cast<std::size_t>(at)] = true;
    if (in.next<std::uint32_t>() != 1) return false;
    if (cell_extension) in.skip(extension_bytes);
    in.skip(4);  // Its owner there.
  }
  std::size_t offset = state_header_bytes;
  const auto found = read_cache(state, offset);
  return found && offset == state.size() && found->v_transposed == v_transposed && found->k == k &&
         found->v == v && found->layers == layers;
}

}  // namespace fermata::engine::llama
