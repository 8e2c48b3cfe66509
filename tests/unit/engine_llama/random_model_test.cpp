// Random models load, remember, say varied things, and come out the same for the same seed.
#include "engine/llama/random_model.h"

#include "base/random.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ggml-backend.h>
#include <gtest/gtest.h>
#include <llama.h>
#include <sys/resource.h>

namespace fermata::engine::llama {
namespace {

namespace fs = std::filesystem;

constexpr int generated_tokens = 64;
const std::string tokenizer_model = FERMATA_SOURCE_DIR "/models/fermata-tiny.gguf";
const std::array<std::string, 3> prompts = {
    "Hello",
    "Count from 1 to 20.",
    "<|im_start|>user\nMy name is Anna and I like pasta. Say the days of the week.<|im_end|>\n"
    "<|im_start|>assistant\n",
};

struct Free {
  void operator()(llama_model* m) const { llama_model_free(m); }
  void operator()(llama_context* c) const { llama_free(c); }
};
using Model = std::unique_ptr<llama_model, Free>;
using Context = std::unique_ptr<llama_context, Free>;
using TokenList = std::vector<llama_token>;

// A folder of its own for each test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("fermata-random-" + random_alphanumeric(12))) {
    fs::create_directory(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const char* name) const { return (path_ / name).string(); }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

 private:
  fs::path path_;
};

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Model load(const std::string& path, bool vocabulary_only = false) {
  llama_model_params params = llama_model_default_params();
  params.vocab_only = vocabulary_only;
  return Model(llama_model_load_from_file(path.c_str(), params));
}

Context make_context(const Model& model) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 1024;
  params.n_batch = 512;
  params.n_ubatch = 64;
  params.swa_full = false;  // as servers do: the window's cells are used again
  params.n_threads = 1;
  params.n_threads_batch = 1;
  params.no_perf = true;
  return Context(llama_init_from_model(model.get(), params));
}

TokenList tokenize(const Model& model, const std::string& text) {
  TokenList tokens(text.size() + 8);
  const int n =
      llama_tokenize(llama_model_get_vocab(model.get()), text.data(), static_cast<int>(text.size()),
                     tokens.data(), static_cast<int>(tokens.size()), false, true);
  EXPECT_GT(n, 0);
  tokens.resize(static_cast<std::size_t>(std::max(n, 0)));
  return tokens;
}

bool feed(const Context& context, TokenList tokens) {
  return llama_decode(context.get(),
                      llama_batch_get_one(tokens.data(), static_cast<int>(tokens.size()))) == 0;
}

// Greedy: the token with the highest logit, `count` times. Shorter when decoding fails.
TokenList generate(const Model& model, const TokenList& prompt, int count = generated_tokens) {
  const Context context = make_context(model);
  TokenList out;
  if (!context || !feed(context, prompt)) {
    return out;
  }
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
  for (int i = 0; i < count; ++i) {
    const float* logits = llama_get_logits_ith(context.get(), -1);
    out.push_back(static_cast<llama_token>(
        std::distance(logits, std::max_element(logits, logits + vocabulary))));
    if (!feed(context, {out.back()})) {
      break;
    }
  }
  return out;
}

std::size_t distinct(const TokenList& tokens) {
  return std::set<llama_token>(tokens.begin(), tokens.end()).size();
}

class RandomModelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
#ifdef FERMATA_LIBLLAMA_LIB_DIR
    ggml_backend_load_all_from_path(FERMATA_LIBLLAMA_LIB_DIR);
#else
    ggml_backend_load_all();
#endif
  }

  static RandomModelSpec tiny(RandomModelKind kind, std::uint64_t seed = 1) {
    return tiny_random_model(kind, tokenizer_model, seed);
  }
  Model make(const RandomModelSpec& spec) {
    const std::string path = folder_.file("made.gguf");
    const auto info = write_random_model(spec, path);
    EXPECT_TRUE(info.ok()) << (info.ok() ? "" : info.error());
    return load(path);
  }
  // The error of a spec that must be refused.
  std::string refusal(const RandomModelSpec& spec) {
    const auto info = write_random_model(spec, folder_.file("refused.gguf"));
    return info.ok() ? "accepted" : info.error();
  }

  Folder folder_;
};

struct KindCase {
  RandomModelKind kind;
  const char* name;
  bool is_recurrent;
  bool is_hybrid;
  int window;
};
constexpr std::array<KindCase, 4> kinds = {{
    {RandomModelKind::dense, "dense", false, false, 0},
    {RandomModelKind::sliding_window, "sliding_window", false, false, 64},
    {RandomModelKind::recurrent, "recurrent", true, false, 0},
    {RandomModelKind::hybrid, "hybrid", false, true, 0},
}};

class RandomModelKindTest : public RandomModelTest, public testing::WithParamInterface<KindCase> {};
INSTANTIATE_TEST_SUITE_P(Kinds, RandomModelKindTest, testing::ValuesIn(kinds),
                         [](const auto& info) { return info.param.name; });

TEST_P(RandomModelKindTest, IsTheKindThatWasAskedFor) {
  const Model model = make(tiny(GetParam().kind));
  ASSERT_TRUE(model);
  EXPECT_EQ(llama_model_is_recurrent(model.get()), GetParam().is_recurrent);
  EXPECT_EQ(llama_model_is_hybrid(model.get()), GetParam().is_hybrid);
  EXPECT_EQ(llama_model_n_swa(model.get()), GetParam().window);
  EXPECT_EQ(llama_model_n_ctx_train(model.get()), 8192);
}

TEST_P(RandomModelKindTest, ForgetsOldPositionsOnlyWithAWindow) {
  const Model model = make(tiny(GetParam().kind));
  ASSERT_TRUE(model);
  const Context context = make_context(model);
  ASSERT_TRUE(context);
  constexpr int fed = 512;
  ASSERT_TRUE(feed(context, TokenList(fed, 300)));
  llama_memory_t memory = llama_get_memory(context.get());
  EXPECT_EQ(llama_memory_seq_pos_max(memory, 0), fed - 1);
  const int first = llama_memory_seq_pos_min(memory, 0);
  if (GetParam().window > 0) {
    EXPECT_GT(first, 0);
    EXPECT_LE(first, fed - GetParam().window);
  } else if (!GetParam().is_recurrent && !GetParam().is_hybrid) {
    EXPECT_EQ(first, 0);
  }
}

TEST_P(RandomModelKindTest, GreedyOutputVariesAndNeverEnds) {
  for (const std::uint64_t seed : {1, 2}) {
    const Model model = make(tiny(GetParam().kind, seed));
    ASSERT_TRUE(model);
    const llama_vocab* vocabulary = llama_model_get_vocab(model.get());
    std::set<TokenList> outputs;
    for (const std::string& prompt : prompts) {
      const TokenList out = generate(model, tokenize(model, prompt));
      ASSERT_EQ(out.size(), std::size_t{generated_tokens});
      EXPECT_GE(distinct(out), std::size_t{40}) << prompt;
      // It has not settled on a loop by the end either.
      EXPECT_GE(distinct({out.end() - generated_tokens / 4, out.end()}), std::size_t{10}) << prompt;
      for (const llama_token token : out) {
        EXPECT_FALSE(llama_vocab_is_eog(vocabulary, token));
        EXPECT_FALSE(llama_vocab_is_control(vocabulary, token));
      }
      outputs.insert(out);
    }
    EXPECT_EQ(outputs.size(), prompts.size());
  }
}

TEST_P(RandomModelKindTest, AnyEarlyTokenDecidesWhatComesLater) {
  const Model model = make(tiny(GetParam().kind));
  ASSERT_TRUE(model);
  TokenList history = tokenize(model, prompts.back());
  const TokenList said = generate(model, history, 200);
  history.insert(history.end(), said.begin(), said.end());
  ASSERT_GT(history.size(), std::size_t{200});
  const TokenList expected = generate(model, history);
  for (const std::size_t changed : {0, 7, 100}) {
    TokenList other = history;
    other[changed] = (other[changed] + 91) % 1200;
    EXPECT_NE(generate(model, other), expected) << "token " << changed;
  }
}

TEST_P(RandomModelKindTest, SeedDecidesTheBytes) {
  const std::string a = folder_.file("a.gguf");
  const std::string b = folder_.file("b.gguf");
  ASSERT_TRUE(write_random_model(tiny(GetParam().kind, 7), a).ok());
  ASSERT_TRUE(write_random_model(tiny(GetParam().kind, 7), b).ok());
  EXPECT_EQ(read_bytes(a), read_bytes(b));

  ASSERT_TRUE(write_random_model(tiny(GetParam().kind, 8), b).ok());
  const Model seven = load(a);
  const Model eight = load(b);
  ASSERT_TRUE(seven && eight);
  const TokenList prompt = tokenize(seven, prompts.back());
  EXPECT_NE(generate(seven, prompt), generate(eight, prompt));
}

TEST_P(RandomModelKindTest, EveryWeightTypeWorksAndIsSmaller) {
  std::int64_t size = INT64_MAX;
  for (const WeightType type : {WeightType::f32, WeightType::f16, WeightType::q8_0}) {
    RandomModelSpec spec = tiny(GetParam().kind);
    spec.weight_type = type;
    const auto info = write_random_model(spec, folder_.file("typed.gguf"));
    ASSERT_TRUE(info.ok()) << info.error();
    EXPECT_LT(info->file_size.value, size);
    size = info->file_size.value;
    const Model model = load(folder_.file("typed.gguf"));
    ASSERT_TRUE(model);
    EXPECT_EQ(llama_model_n_params(model.get()), static_cast<std::uint64_t>(info->parameters));
    EXPECT_GE(distinct(generate(model, tokenize(model, prompts.back()))), std::size_t{40});
  }
}

TEST_F(RandomModelTest, SpeaksWithTheTokenizerOfTheOtherModel) {
  const Model original = load(tokenizer_model, true);
  const Model made = make(tiny(RandomModelKind::dense));
  ASSERT_TRUE(original && made);
  const llama_vocab* vocabulary = llama_model_get_vocab(made.get());
  EXPECT_EQ(llama_vocab_n_tokens(vocabulary),
            llama_vocab_n_tokens(llama_model_get_vocab(original.get())));
  EXPECT_EQ(tokenize(made, prompts.back()), tokenize(original, prompts.back()));
  ASSERT_NE(llama_model_chat_template(made.get(), nullptr), nullptr);
  EXPECT_STREQ(llama_model_chat_template(made.get(), nullptr),
               llama_model_chat_template(original.get(), nullptr));
}

TEST_F(RandomModelTest, TokensThatFillUpTheVocabularyAreNeverUsed) {
  RandomModelSpec spec = tiny(RandomModelKind::dense);
  const Model plain = make(spec);
  spec.shape.vocabulary = 3000;
  const Model filled = make(spec);
  ASSERT_TRUE(plain && filled);
  const int own = llama_vocab_n_tokens(llama_model_get_vocab(plain.get()));
  EXPECT_EQ(llama_vocab_n_tokens(llama_model_get_vocab(filled.get())), 3000);
  EXPECT_EQ(tokenize(filled, prompts.back()), tokenize(plain, prompts.back()));
  EXPECT_EQ(tokenize(filled, "<|unused_2000|>"), tokenize(plain, "<|unused_2000|>"));
  for (const std::string& prompt : prompts) {
    const TokenList out = generate(filled, tokenize(filled, prompt));
    ASSERT_EQ(out.size(), std::size_t{generated_tokens});
    EXPECT_LT(*std::max_element(out.begin(), out.end()), own);
  }
}

TEST_F(RandomModelTest, ProgressEndsAtTheSizeOfTheFile) {
  std::vector<std::int64_t> written;
  std::set<std::int64_t> totals;
  const std::string path = folder_.file("watched.gguf");
  const auto info =
      write_random_model(tiny(RandomModelKind::hybrid), path, [&](Bytes done, Bytes total) {
        written.push_back(done.value);
        totals.insert(total.value);
      });
  ASSERT_TRUE(info.ok()) << info.error();
  const auto size = static_cast<std::int64_t>(fs::file_size(path));
  EXPECT_EQ(info->file_size.value, size);
  EXPECT_EQ(totals, std::set<std::int64_t>{size});
  EXPECT_TRUE(std::is_sorted(written.begin(), written.end()));
  ASSERT_FALSE(written.empty());
  EXPECT_EQ(written.back(), size);
}

TEST_F(RandomModelTest, ReplacesAFileOfThatName) {
  const std::string path = folder_.file("old.gguf");
  std::ofstream(path) << "old";
  ASSERT_TRUE(write_random_model(tiny(RandomModelKind::dense), path).ok());
  EXPECT_TRUE(load(path));
  EXPECT_EQ(folder_.names(), std::set<std::string>{"old.gguf"});
}

TEST_F(RandomModelTest, UnwritablePathIsAnError) {
  const RandomModelSpec spec = tiny(RandomModelKind::dense);
  const auto absent = write_random_model(spec, folder_.file("absent/model.gguf"));
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().find("absent/model.gguf': No such file or directory"), std::string::npos)
      << absent.error();
  const auto folder = write_random_model(spec, folder_.file(""));
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().find("not a regular file"), std::string::npos) << folder.error();
  EXPECT_TRUE(folder_.names().empty());
}

// Files of this process cannot grow beyond a size, for as long as it lives: a disk that is full.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~SmallDisk() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    std::signal(SIGXFSZ, SIG_DFL);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit before_{};
};

TEST_F(RandomModelTest, FullDiskLeavesTheOldFileAndNoOther) {
  const std::string path = folder_.file("kept.gguf");
  std::ofstream(path) << "old";
  std::string error;
  {
    const SmallDisk disk(1'000'000);
    const auto info = write_random_model(tiny(RandomModelKind::dense), path);
    error = info.ok() ? "written" : info.error();
  }
  EXPECT_NE(error.find("kept.gguf': File too large"), std::string::npos) << error;
  EXPECT_EQ(read_bytes(path), "old");
  EXPECT_EQ(folder_.names(), std::set<std::string>{"kept.gguf"});
}

TEST_F(RandomModelTest, ATokenizerThatCannotBeReadIsAnError) {
  RandomModelSpec spec = tiny(RandomModelKind::dense);
  spec.tokenizer_from = folder_.file("absent.gguf");
  EXPECT_NE(refusal(spec).find("No such file or directory"), std::string::npos) << refusal(spec);

  spec.tokenizer_from = folder_.file("text.gguf");
  std::ofstream(spec.tokenizer_from) << "not a model";
  EXPECT_NE(refusal(spec).find("invalid magic"), std::string::npos) << refusal(spec);

  spec.tokenizer_from = folder_.file("torn.gguf");
  std::ofstream(spec.tokenizer_from) << read_bytes(tokenizer_model).substr(0, 5000);
  EXPECT_NE(refusal(spec).find("cannot read the tokenizer"), std::string::npos) << refusal(spec);
  EXPECT_EQ(refusal(spec).find('\n'), std::string::npos);
}

TEST_F(RandomModelTest, AShapeThatNoModelCanHaveIsAnError) {
  const auto refused = [&](RandomModelKind kind, auto change) {
    RandomModelSpec spec = tiny(kind);
    change(spec.shape);
    return refusal(spec);
  };
  using Shape = RandomModelShape;
  constexpr auto dense = RandomModelKind::dense;
  const std::string start = "cannot make this model: ";
  EXPECT_EQ(refused(dense, [](Shape& s) { s.layers = 0; }), start + "layers must be from 1 to 256");
  EXPECT_EQ(refused(RandomModelKind::hybrid, [](Shape& s) { s.layers = 1; }),
            start + "layers must be from 2 to 256");
  EXPECT_EQ(refused(RandomModelKind::recurrent, [](Shape& s) { s.width = 100; }),
            start + "width must be a multiple of 32, from 32 to 16384");
  EXPECT_EQ(refused(dense, [](Shape& s) { s.heads = 0; }),
            start + "width must be a multiple of 32 x heads");
  EXPECT_EQ(refused(dense, [](Shape& s) { s.heads = 3; }),
            start + "width must be a multiple of 32 x heads");
  EXPECT_EQ(refused(dense, [](Shape& s) { s.kv_heads = 3; }), start + "kv_heads must divide heads");
  EXPECT_EQ(refused(dense, [](Shape& s) { s.feed_forward = 100; }),
            start + "feed_forward must be a multiple of 32, from 32 to 65536");
  EXPECT_EQ(refused(dense, [](Shape& s) { s.context_length = Tokens(0); }),
            start + "context_length must be from 1 to 16777216");
  EXPECT_EQ(
      refused(RandomModelKind::sliding_window, [](Shape& s) { s.sliding_window = Tokens(9000); }),
      start + "sliding_window must be from 1 to context_length");
  EXPECT_NE(refused(dense, [](Shape& s) { s.vocabulary = 100; }).find("is smaller than the 1280"),
            std::string::npos);
}

}  // namespace
}  // namespace fermata::engine::llama
