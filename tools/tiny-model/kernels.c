// Training kernels, float32, forward and backward: causal attention over documents of any length
// (interleaved RoPE, grouped query heads), RMSNorm, SwiGLU, softmax cross-entropy.
//
// kernels.py is the only caller. Arrays are dense, row after row, and belong to the caller. An
// output is written whole, except weight_gradient of rms_norm_backward, which is added to.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  head_size = 32,
  tile_columns = 16,
  block_rows = 4,  // queries that are computed together
  lanes = 8,
  vectors_per_head = head_size / lanes,
};

typedef float Vector __attribute__((vector_size(4 * lanes), aligned(4 * lanes)));

// One row of attention input is `heads` queries, `groups` keys and `groups` values of head_size.
typedef struct {
  const float* rows;
  const int* starts;  // the first row of each document, and one more: the end
  int heads;
  int groups;
  const float* angles;  // [position][head_size]: cosine and sine of each pair
} Attention;

// The rows of one document as one group of heads sees them.
typedef struct {
  int first_row;
  int length;
  int padded_length;  // a multiple of tile_columns, with room for a last block
} Document;

static Vector broadcast(float x) { return (Vector){x, x, x, x, x, x, x, x}; }

static float* zeroed(size_t count) {
  const size_t bytes = (count * sizeof(float) + 63) / 64 * 64 + 64;
  float* memory = aligned_alloc(64, bytes);
  if (memory == NULL) {
    fprintf(stderr, "kernels: no memory for %zu bytes\n", bytes);
    abort();
  }
  memset(memory, 0, bytes);
  return memory;
}

static size_t row_width(const Attention* a) {
  return (size_t)(a->heads + 2 * a->groups) * head_size;
}

static const float* query_at(const Attention* a, int row, int head) {
  return a->rows + row * row_width(a) + (size_t)head * head_size;
}

static const float* key_at(const Attention* a, int row, int group) {
  return query_at(a, row, a->heads + group);
}

static const float* value_at(const Attention* a, int row, int group) {
  return query_at(a, row, a->heads + a->groups + group);
}

static Document document_of(const Attention* a, int index) {
  const int first_row = a->starts[index];
  const int length = a->starts[index + 1] - first_row;
  const int room = length + block_rows + tile_columns - 1;
  return (Document){first_row, length, room / tile_columns * tile_columns};
}

// A transposed matrix lies in tiles of tile_columns columns; within a tile row after row.
static size_t tiled(int row, int column) {
  return (size_t)(column / tile_columns) * head_size * tile_columns + (size_t)row * tile_columns +
         column % tile_columns;
}

static void store_tiled(const float* vector, int column, float* tiles) {
  for (int i = 0; i < head_size; i++) tiles[tiled(i, column)] = vector[i];
}

// out[r][j] = dot(rows[r], column j of tiles), for j < columns, a multiple of tile_columns.
static void multiply_tiles(const float* rows, const float* tiles, int columns, float* out,
                           int out_stride) {
  for (int j = 0; j < columns; j += tile_columns) {
    Vector sums[block_rows][2];
    for (int r = 0; r < block_rows; r++) sums[r][0] = sums[r][1] = broadcast(0);
    for (int i = 0; i < head_size; i++) {
      const Vector* tile = (const Vector*)(tiles + tiled(i, j));
      for (int r = 0; r < block_rows; r++) {
        const Vector x = broadcast(rows[r * head_size + i]);
        sums[r][0] += x * tile[0];
        sums[r][1] += x * tile[1];
      }
    }
    for (int r = 0; r < block_rows; r++) {
      Vector* target = (Vector*)(out + (size_t)r * out_stride + j);
      target[0] = sums[r][0];
      target[1] = sums[r][1];
    }
  }
}

// out[r] = sum over j of weights[r][j] * vectors[j].
static void combine(const float* weights, int weights_stride, const float* vectors, int count,
                    float* out) {
  for (int r = 0; r < block_rows; r += 2) {  // two rows at a time fit the registers
    Vector first[vectors_per_head], second[vectors_per_head];
    for (int c = 0; c < vectors_per_head; c++) first[c] = second[c] = broadcast(0);
    const float* first_weights = weights + (size_t)r * weights_stride;
    const float* second_weights = first_weights + weights_stride;
    for (int j = 0; j < count; j++) {
      const Vector* vector = (const Vector*)(vectors + (size_t)j * head_size);
      const Vector x = broadcast(first_weights[j]), y = broadcast(second_weights[j]);
      for (int c = 0; c < vectors_per_head; c++) {
        first[c] += x * vector[c];
        second[c] += y * vector[c];
      }
    }
    Vector* target = (Vector*)(out + (size_t)r * head_size);
    for (int c = 0; c < vectors_per_head; c++) {
      target[c] = first[c];
      target[vectors_per_head + c] = second[c];
    }
  }
}

// sums[j] += sum over r of weights[r][j] * rows[r].
static void add_outer(const float* weights, int weights_stride, const float* rows, int count,
                      float* sums) {
  const Vector* row_vectors = (const Vector*)rows;
  for (int j = 0; j < count; j++) {
    Vector* target = (Vector*)(sums + (size_t)j * head_size);
    Vector sum[vectors_per_head];
    for (int c = 0; c < vectors_per_head; c++) sum[c] = target[c];
    for (int r = 0; r < block_rows; r++) {
      const Vector x = broadcast(weights[(size_t)r * weights_stride + j]);
      for (int c = 0; c < vectors_per_head; c++)
        sum[c] += x * row_vectors[r * vectors_per_head + c];
    }
    for (int c = 0; c < vectors_per_head; c++) target[c] = sum[c];
  }
}

// Turn the pairs of a head by the angles of a position; direction is 1, or -1 to turn back.
static void rotate(const Attention* a, const float* in, int position, float scale, int direction,
                   float* out) {
  const float* angles = a->angles + (size_t)position * head_size;
  for (int i = 0; i < head_size; i += 2) {
    const float cosine = angles[i], sine = direction * angles[i + 1];
    const float x = in[i], y = in[i + 1];
    out[i] = scale * (x * cosine - y * sine);
    out[i + 1] = scale * (x * sine + y * cosine);
  }
}

static float query_scale(void) { return 1.0f / sqrtf(head_size); }

// A block of up to block_rows queries of one head, starting at a position of a document.
typedef struct {
  int head;
  int position;
  int used;     // queries that exist; the others are zero
  int columns;  // keys that any of them may see, rounded up to whole tiles
} Block;

static Block block_at(Document document, int head, int position) {
  const int left = document.length - position;
  const int used = left < block_rows ? left : block_rows;
  const int columns = (position + used + tile_columns - 1) / tile_columns * tile_columns;
  return (Block){head, position, used, columns};
}

static int visible_keys(Block block, int r) { return r < block.used ? block.position + r + 1 : 0; }

static void load_queries(const Attention* a, Document document, Block block, float* queries) {
  memset(queries, 0, sizeof(float) * block_rows * head_size);
  for (int r = 0; r < block.used; r++) {
    const int position = block.position + r;
    const float* query = query_at(a, document.first_row + position, block.head);
    rotate(a, query, position, query_scale(), 1, queries + r * head_size);
  }
}

// Scores become weights that are not yet divided by their sum; hidden keys get weight 0.
// Returns the sum, and the logarithm of the sum of the exponentials through log_sum.
static float exponentiate(float* scores, int visible, int columns, float* log_sum) {
  float largest = -1e30f, sum = 0;
  for (int j = 0; j < visible; j++) largest = scores[j] > largest ? scores[j] : largest;
  for (int j = 0; j < visible; j++) {
    scores[j] = expf(scores[j] - largest);
    sum += scores[j];
  }
  for (int j = visible; j < columns; j++) scores[j] = 0;
  *log_sum = largest + logf(sum);
  return sum;
}

static void forward_block(const Attention* a, Document document, Block block,
                          const float* key_tiles, const float* values, float* scores, float* out,
                          float* log_sums) {
  _Alignas(32) float queries[block_rows * head_size];
  _Alignas(32) float results[block_rows * head_size];
  float inverse_sums[block_rows];
  const int stride = document.padded_length;
  const size_t first_row = (size_t)document.first_row + block.position;
  load_queries(a, document, block, queries);
  multiply_tiles(queries, key_tiles, block.columns, scores, stride);
  for (int r = 0; r < block_rows; r++) {
    float log_sum;
    const float sum =
        exponentiate(scores + (size_t)r * stride, visible_keys(block, r), block.columns, &log_sum);
    if (r >= block.used) continue;
    inverse_sums[r] = 1 / sum;
    log_sums[(first_row + r) * a->heads + block.head] = log_sum;
  }
  combine(scores, stride, values, block.columns, results);
  for (int r = 0; r < block.used; r++) {
    float* target = out + ((first_row + r) * a->heads + block.head) * head_size;
    for (int i = 0; i < head_size; i++) target[i] = results[r * head_size + i] * inverse_sums[r];
  }
}

static void forward_group(const Attention* a, Document document, int group, float* out,
                          float* log_sums) {
  const size_t elements = (size_t)document.padded_length * head_size;
  float* key_tiles = zeroed(elements);
  float* values = zeroed(elements);
  float* scores = zeroed((size_t)block_rows * document.padded_length);
  for (int j = 0; j < document.length; j++) {
    float key[head_size];
    rotate(a, key_at(a, document.first_row + j, group), j, 1, 1, key);
    store_tiled(key, j, key_tiles);
    memcpy(values + (size_t)j * head_size, value_at(a, document.first_row + j, group),
           sizeof(float) * head_size);
  }
  const int heads_per_group = a->heads / a->groups;
  for (int head = group * heads_per_group; head < (group + 1) * heads_per_group; head++) {
    for (int position = 0; position < document.length; position += block_rows) {
      forward_block(a, document, block_at(document, head, position), key_tiles, values, scores, out,
                    log_sums);
    }
  }
  free(key_tiles);
  free(values);
  free(scores);
}

// out [rows][heads][head_size], log_sums [rows][heads] (for the backward pass).
void attention_forward(const float* rows, const int* starts, int documents, int heads, int groups,
                       const float* angles, float* out, float* log_sums) {
  const Attention a = {rows, starts, heads, groups, angles};
#pragma omp parallel for schedule(dynamic, 1)
  for (int task = 0; task < documents * groups; task++) {
    forward_group(&a, document_of(&a, task / groups), task % groups, out, log_sums);
  }
}

// What the backward pass reads and writes, all [rows][...] as in the forward pass.
typedef struct {
  const float* out;
  const float* log_sums;
  const float* out_gradient;
  float* gradient;
} Gradients;

// Work memory of the backward pass for one group of one document.
typedef struct {
  float* keys;
  float* key_tiles;
  float* value_tiles;
  float* key_gradient;
  float* value_gradient;
  float* weights;  // [block_rows][padded_length]
  float* score_gradient;
} Scratch;

// The gradient of the scores out of that of the weights (in place); scores become weights.
static void differentiate_scores(float* scores, float* gradient, int visible, int columns,
                                 float log_sum, float dot) {
  for (int j = 0; j < visible; j++) {
    scores[j] = expf(scores[j] - log_sum);
    gradient[j] = scores[j] * (gradient[j] - dot);
  }
  for (int j = visible; j < columns; j++) scores[j] = gradient[j] = 0;
}

static void backward_block(const Attention* a, const Gradients* g, Document document, Block block,
                           const Scratch* scratch) {
  _Alignas(32) float queries[block_rows * head_size];
  _Alignas(32) float query_gradient[block_rows * head_size];
  _Alignas(32) float out_gradient[block_rows * head_size] = {0};
  float dots[block_rows] = {0}, log_sums[block_rows] = {0};
  const int stride = document.padded_length;
  load_queries(a, document, block, queries);
  for (int r = 0; r < block.used; r++) {
    const size_t row = (size_t)document.first_row + block.position + r;
    const size_t index = row * a->heads + block.head;
    float* target = out_gradient + r * head_size;
    memcpy(target, g->out_gradient + index * head_size, sizeof(float) * head_size);
    for (int i = 0; i < head_size; i++) dots[r] += target[i] * g->out[index * head_size + i];
    log_sums[r] = g->log_sums[index];
  }
  multiply_tiles(queries, scratch->key_tiles, block.columns, scratch->weights, stride);
  multiply_tiles(out_gradient, scratch->value_tiles, block.columns, scratch->score_gradient,
                 stride);
  for (int r = 0; r < block_rows; r++) {
    differentiate_scores(scratch->weights + (size_t)r * stride,
                         scratch->score_gradient + (size_t)r * stride, visible_keys(block, r),
                         block.columns, log_sums[r], dots[r]);
  }
  combine(scratch->score_gradient, stride, scratch->keys, block.columns, query_gradient);
  add_outer(scratch->score_gradient, stride, queries, block.columns, scratch->key_gradient);
  add_outer(scratch->weights, stride, out_gradient, block.columns, scratch->value_gradient);
  for (int r = 0; r < block.used; r++) {
    const int position = block.position + r;
    float* target = g->gradient + (document.first_row + position) * row_width(a) +
                    (size_t)block.head * head_size;
    rotate(a, query_gradient + r * head_size, position, query_scale(), -1, target);
  }
}

static void load_keys_and_values(const Attention* a, Document document, int group,
                                 const Scratch* scratch) {
  for (int j = 0; j < document.length; j++) {
    float* key = scratch->keys + (size_t)j * head_size;
    rotate(a, key_at(a, document.first_row + j, group), j, 1, 1, key);
    store_tiled(key, j, scratch->key_tiles);
    store_tiled(value_at(a, document.first_row + j, group), j, scratch->value_tiles);
  }
}

static void backward_group(const Attention* a, const Gradients* g, Document document, int group) {
  const size_t elements = (size_t)document.padded_length * head_size;
  const size_t scores = (size_t)document.padded_length * block_rows;
  float* memory = zeroed(5 * elements + 2 * scores);
  const Scratch scratch = {
      .keys = memory,
      .key_tiles = memory + elements,
      .value_tiles = memory + 2 * elements,
      .key_gradient = memory + 3 * elements,
      .value_gradient = memory + 4 * elements,
      .weights = memory + 5 * elements,
      .score_gradient = memory + 5 * elements + scores,
  };
  load_keys_and_values(a, document, group, &scratch);
  const int heads_per_group = a->heads / a->groups;
  for (int head = group * heads_per_group; head < (group + 1) * heads_per_group; head++) {
    for (int position = 0; position < document.length; position += block_rows) {
      backward_block(a, g, document, block_at(document, head, position), &scratch);
    }
  }
  for (int j = 0; j < document.length; j++) {
    float* target = g->gradient + (document.first_row + j) * row_width(a) +
                    (size_t)(a->heads + group) * head_size;
    rotate(a, scratch.key_gradient + (size_t)j * head_size, j, 1, -1, target);
    memcpy(target + (size_t)a->groups * head_size, scratch.value_gradient + (size_t)j * head_size,
           sizeof(float) * head_size);
  }
  free(memory);
}

// gradient has the shape of rows.
void attention_backward(const float* rows, const int* starts, int documents, int heads, int groups,
                        const float* angles, const float* out, const float* log_sums,
                        const float* out_gradient, float* gradient) {
  const Attention a = {rows, starts, heads, groups, angles};
  const Gradients g = {out, log_sums, out_gradient, gradient};
#pragma omp parallel for schedule(dynamic, 1)
  for (int task = 0; task < documents * groups; task++) {
    backward_group(&a, &g, document_of(&a, task / groups), task % groups);
  }
}

// out[i] = in[i] * weight / root mean square of in[i]; inverse_roots [rows] for the backward pass.
void rms_norm_forward(const float* in, const float* weight, float* out, float* inverse_roots,
                      int rows, int width, float epsilon) {
#pragma omp parallel for
  for (int i = 0; i < rows; i++) {
    const float* x = in + (size_t)i * width;
    float* y = out + (size_t)i * width;
    float squares = 0;
    for (int k = 0; k < width; k++) squares += x[k] * x[k];
    const float inverse_root = 1 / sqrtf(squares / width + epsilon);
    inverse_roots[i] = inverse_root;
    for (int k = 0; k < width; k++) y[k] = x[k] * inverse_root * weight[k];
  }
}

static void rms_norm_backward_row(const float* x, const float* weight, float inverse_root,
                                  const float* out_gradient, int width, float* gradient,
                                  float* weight_gradient) {
  float dot = 0;
  for (int k = 0; k < width; k++) {
    dot += out_gradient[k] * weight[k] * x[k];
    weight_gradient[k] += out_gradient[k] * x[k] * inverse_root;
  }
  dot *= inverse_root * inverse_root * inverse_root / width;
  for (int k = 0; k < width; k++) {
    gradient[k] = out_gradient[k] * weight[k] * inverse_root - x[k] * dot;
  }
}

void rms_norm_backward(const float* in, const float* weight, const float* inverse_roots,
                       const float* out_gradient, float* gradient, float* weight_gradient, int rows,
                       int width) {
#pragma omp parallel
  {
    float* own_weight_gradient = zeroed(width);
#pragma omp for
    for (int i = 0; i < rows; i++) {
      const size_t start = (size_t)i * width;
      rms_norm_backward_row(in + start, weight, inverse_roots[i], out_gradient + start, width,
                            gradient + start, own_weight_gradient);
    }
#pragma omp critical
    for (int k = 0; k < width; k++) weight_gradient[k] += own_weight_gradient[k];
    free(own_weight_gradient);
  }
}

// in [rows][2][width] is gate and up; out [rows][width] = silu(gate) * up.
void swiglu_forward(const float* in, float* out, int rows, int width) {
#pragma omp parallel for
  for (int i = 0; i < rows; i++) {
    const float* gate = in + (size_t)i * 2 * width;
    const float* up = gate + width;
    float* y = out + (size_t)i * width;
    for (int k = 0; k < width; k++) y[k] = gate[k] / (1 + expf(-gate[k])) * up[k];
  }
}

void swiglu_backward(const float* in, const float* out_gradient, float* gradient, int rows,
                     int width) {
#pragma omp parallel for
  for (int i = 0; i < rows; i++) {
    const float* gate = in + (size_t)i * 2 * width;
    const float* up = gate + width;
    const float* d = out_gradient + (size_t)i * width;
    float* gate_gradient = gradient + (size_t)i * 2 * width;
    float* up_gradient = gate_gradient + width;
    for (int k = 0; k < width; k++) {
      const float sigmoid = 1 / (1 + expf(-gate[k]));
      up_gradient[k] = d[k] * gate[k] * sigmoid;
      gate_gradient[k] = d[k] * up[k] * sigmoid * (1 + gate[k] * (1 - sigmoid));
    }
  }
}

// logits [rows][width] are replaced by the gradient of `scale` times the summed loss.
// losses [rows]; hits [rows]: 1 where the target has the largest logit.
void cross_entropy(float* logits, const int* targets, float* losses, unsigned char* hits, int rows,
                   int width, float scale) {
#pragma omp parallel for
  for (int i = 0; i < rows; i++) {
    float* x = logits + (size_t)i * width;
    float largest = -1e30f, sum = 0;
    for (int k = 0; k < width; k++) largest = x[k] > largest ? x[k] : largest;
    const float at_target = x[targets[i]];
    hits[i] = at_target >= largest;
    for (int k = 0; k < width; k++) {
      x[k] = expf(x[k] - largest);
      sum += x[k];
    }
    losses[i] = logf(sum) + largest - at_target;
    const float factor = scale / sum;
    for (int k = 0; k < width; k++) x[k] *= factor;
    x[targets[i]] -= scale;
  }
}
