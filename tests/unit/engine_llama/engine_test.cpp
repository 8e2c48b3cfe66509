// What is particular to libllama's engines; the contract itself is tests/conformance.
#include "engine/engine.h"

#include "base/random.h"
#include "engine/llama/backend.h"
#include "engine/llama/model.h"
#include "engine/vocabulary.h"
#include "support/llama_models.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::engine::llama {
namespace {

using fermata::testing::load_test_model;
using fermata::testing::ModelFolder;
using fermata::testing::tiny_model_path;
using fermata::testing::tiny_vocabulary;

EngineOptions one_thread(std::int64_t n_ubatch = 64) {
  EngineOptions options;
  options.threads = 1;
  options.poll = 0;
  options.n_batch = Tokens(1024);
  options.n_ubatch = Tokens(n_ubatch);
  return options;
}

Geometry geometry(std::int64_t n_ctx, std::int32_t n_parallel, Layout layout = Layout::pooled) {
  Geometry out;
  out.n_ctx = Tokens(n_ctx);
  out.n_parallel = n_parallel;
  out.layout = layout;
  return out;
}

std::unique_ptr<Engine> build(Model& model, const Geometry& shape, const EngineOptions& options) {
  auto built = model.build(shape, options);
  EXPECT_TRUE(built.ok()) << built.error().message;
  return std::move(built).value();
}

std::vector<TokenId> text(std::uint64_t seed, std::int64_t count) {
  Random random(seed);
  std::vector<TokenId> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(TokenId{static_cast<std::int32_t>(random.between(32, 126))});
  }
  return out;
}

// Computes the tokens; the last one's greedy successor with its log-probability.
Sampled feed(Engine& engine, Seat seat, const std::vector<TokenId>& tokens) {
  SamplingParams params;
  params.temperature = 0.0F;
  params.n_probs = 1;
  auto sampler = tiny_vocabulary()->make_sampler(params, {});
  const RowGroup group{seat, engine.position(seat), tokens, sampler->get(), nullptr};
  GroupResult result;
  EXPECT_EQ(engine.step({&group, 1}, {&result, 1}), StepOutcome::done);
  return result.sampled.value_or(Sampled{});
}

std::shared_ptr<Model> random_model(RandomModelKind kind, std::uint64_t seed = 1) {
  return load_test_model(ModelFolder::instance().random_model(kind, seed));
}

TEST(LlamaLibrary, StartsOnceAndDescribesItsDevices) {
  ASSERT_TRUE(start_library().ok());
  EXPECT_TRUE(start_library("/no/such/folder").ok()) << "the first call counts";
  EXPECT_TRUE(library_version().starts_with(FERMATA_LIBLLAMA_VERSION));
  const auto devices = describe_backends();
  ASSERT_FALSE(devices.empty());
  bool has_cpu = false;
  for (const BackendInfo& device : devices) {
    EXPECT_FALSE(device.name.empty());
    if (device.kind != "cpu") continue;
    has_cpu = true;
    EXPECT_GT(device.memory_total, Bytes(0));
    EXPECT_FALSE(device.features.empty());
  }
  EXPECT_TRUE(has_cpu);
}

TEST(LlamaModelInfo, TellsWhatTheFileSays) {
  const ModelInfo& info = load_test_model(tiny_model_path())->info();
  EXPECT_EQ(info.path, tiny_model_path());
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.name, "fermata-tiny");
  EXPECT_EQ(info.file_type, "F16");
  EXPECT_EQ(info.kind, MemoryKind::attention);
  EXPECT_EQ(info.trained_window, Tokens(8192));
  EXPECT_EQ(info.sliding_window, Tokens(0));
  EXPECT_EQ(info.n_vocab, 1280);
  EXPECT_GT(info.n_params, 1'000'000U);
  EXPECT_GT(info.size, Bytes(3'000'000));
  EXPECT_FALSE(info.has_encoder);
  EXPECT_EQ(random_model(RandomModelKind::sliding_window)->info().sliding_window, Tokens(64));
}

TEST(LlamaModelInfo, AContextOfSizeZeroIsTheTrainedWindow) {
  const auto engine = build(*load_test_model(tiny_model_path()), geometry(0, 1), one_thread());
  EXPECT_EQ(engine->limits().window, Tokens(8192));
}

// Against the library: a sequence of one token more is so much larger.
TEST(LlamaModelInfo, BytesPerTokenAreWhatATokenAdds) {
  for (const RandomModelKind kind : {RandomModelKind::dense, RandomModelKind::sliding_window,
                                     RandomModelKind::recurrent, RandomModelKind::hybrid}) {
    const auto model = random_model(kind);
    auto* handle = dynamic_cast<LlamaModel*>(model.get())->handle();
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 512;
    params.swa_full = false;
    params.n_threads = params.n_threads_batch = 1;
    const llama_context_ptr context(llama_init_from_model(handle, params));
    ASSERT_TRUE(context);
    const auto state_bytes = [&] {
      // Without the part of fixed size or with a window.
      const auto whole = static_cast<std::int64_t>(llama_state_seq_get_size(context.get(), 0));
      const auto partial = static_cast<std::int64_t>(
          llama_state_seq_get_size_ext(context.get(), 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
      return kind == RandomModelKind::dense ? whole : whole - partial;
    };
    std::int64_t before = 0;
    for (int i = 0; i < 3; ++i) {
      llama_token token = 65 + i;
      ASSERT_EQ(llama_decode(context.get(), llama_batch_get_one(&token, 1)), 0);
      const std::int64_t now = state_bytes();
      constexpr std::int64_t cell_head = 12;  // Position, count of owners, owner.
      const std::int64_t expected = model->bytes_per_token(KvType::f16, KvType::f16).value;
      const std::int64_t added = expected > 0 ? expected + cell_head : 0;
      if (i > 0) {
        EXPECT_EQ(now - before, added);
      }
      before = now;
    }
    EXPECT_EQ(model->bytes_per_token(KvType::f32, KvType::f32).value,
              2 * model->bytes_per_token(KvType::f16, KvType::f16).value);
  }
  EXPECT_EQ(random_model(RandomModelKind::recurrent)->bytes_per_token(KvType::f16, KvType::f16),
            Bytes(0));
}

TEST(LlamaFingerprint, IsOfTheContentsNotTheName) {
  const auto& folder = ModelFolder::instance();
  const std::string copy = folder.file("renamed.gguf");
  const std::string changed = folder.file("changed.gguf");
  std::filesystem::copy_file(tiny_model_path(), copy);
  std::filesystem::copy_file(tiny_model_path(), changed);
  {
    std::fstream file(changed, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(2'000'003);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(2'000'003);
    file.put(byte);
  }
  const auto original = load_test_model(tiny_model_path());
  const auto print = original->fingerprint(KvType::f16, KvType::f16);
  EXPECT_EQ(original->fingerprint(KvType::f16, KvType::f16), print);
  EXPECT_EQ(load_test_model(copy)->fingerprint(KvType::f16, KvType::f16), print);
  EXPECT_NE(load_test_model(changed)->fingerprint(KvType::f16, KvType::f16), print);
  EXPECT_NE(original->fingerprint(KvType::q8_0, KvType::f16), print);
  EXPECT_NE(original->fingerprint(KvType::f16, KvType::q8_0), print);
  EXPECT_NE(original->fingerprint(KvType::q8_0, KvType::f16),
            original->fingerprint(KvType::f16, KvType::q8_0));
}

TEST(LlamaFingerprint, AModelKnowsItselfAfterItsFileIsGone) {
  const std::string path = ModelFolder::instance().file("vanishing.gguf");
  std::filesystem::copy_file(tiny_model_path(), path);
  const auto model = load_test_model(path);
  std::filesystem::remove(path);
  EXPECT_EQ(model->fingerprint(KvType::f16, KvType::f16),
            load_test_model(tiny_model_path())->fingerprint(KvType::f16, KvType::f16));
}

TEST(LlamaModelLoad, ReportsProgressAndCanBeStopped) {
  float last = -1.0F;
  ModelOptions options;
  options.progress = [&](float part) {
    EXPECT_GE(part, last);
    last = part;
    return true;
  };
  ASSERT_TRUE(load_model(tiny_model_path(), options).ok());
  EXPECT_FLOAT_EQ(last, 1.0F);
  options.progress = [](float) { return false; };
  EXPECT_FALSE(load_model(tiny_model_path(), options).ok());
}

// A window cache that is full forgets its oldest cells: then a prefix that ends far back is lost,
// one that ends within the window is not.
TEST(LlamaSlidingWindow, KeepsWhatItsWindowStillHolds) {
  const auto model = random_model(RandomModelKind::sliding_window);
  for (const Layout layout : {Layout::pooled, Layout::split}) {
    const auto engine = build(*model, geometry(2048, 1, layout), one_thread());
    const auto all = text(1, 1000);
    feed(*engine, Seat(0), all);
    EXPECT_EQ(engine->truncatable(Seat(0), Tokens(100)), Tokens(0));
    EXPECT_EQ(engine->truncate(Seat(0), Tokens(100)), EditOutcome::unsupported);
    EXPECT_EQ(engine->position(Seat(0)), Tokens(1000));
    const Tokens keep(990);
    ASSERT_EQ(engine->truncatable(Seat(0), keep), keep);
    ASSERT_EQ(engine->truncate(Seat(0), keep), EditOutcome::done);
    const auto tail = text(2, 5);
    const Sampled after = feed(*engine, Seat(0), tail);
    const auto fresh = build(*model, geometry(2048, 1, layout), one_thread());
    feed(*fresh, Seat(0), std::vector<TokenId>(all.begin(), all.begin() + keep.value));
    const Sampled expected = feed(*fresh, Seat(0), tail);
    EXPECT_EQ(after.token, expected.token);
    EXPECT_NEAR(after.logprob, expected.logprob, 0.05);
  }
}

TEST(LlamaSlidingWindow, AFullSizedWindowCacheRemembersMore) {
  EngineOptions options = one_thread();
  options.swa_full = true;
  const auto engine =
      build(*random_model(RandomModelKind::sliding_window), geometry(2048, 1), options);
  feed(*engine, Seat(0), text(1, 1000));
  EXPECT_EQ(engine->truncatable(Seat(0), Tokens(100)), Tokens(100));
}

// The flag rises while the only ubatch of the step runs: nothing of it stays.
TEST(LlamaCancel, AnUbatchEndsEarlyWhenNobodyWaitsForIt) {
  const auto model = load_test_model(tiny_model_path());
  const auto engine = build(*model, geometry(2048, 2), one_thread(1024));
  ASSERT_TRUE(engine->capabilities().cancel_in_ubatch);
  const auto prompt = text(3, 1000);
  const Sampled expected = feed(*engine, Seat(1), prompt);
  engine->clear(Seat(1));
  bool ended_early = false;
  for (int round = 0; round < 200 && !ended_early; ++round) {
    std::atomic<bool> go{false};
    std::atomic<bool> cancelled{false};
    std::thread canceller([&] {
      while (!go.load()) std::this_thread::yield();
      // On a busy machine one yield can outlast the step.
      for (int i = 0; i < round % 40 * 10; ++i) std::this_thread::yield();
      cancelled.store(true);
    });
    const RowGroup group{Seat(0), Tokens(0), prompt, nullptr, &cancelled};
    GroupResult result;
    go.store(true);
    const bool raised_before = cancelled.load();
    const StepOutcome outcome = engine->step({&group, 1}, {&result, 1});
    canceller.join();
    ended_early = !raised_before && outcome == StepOutcome::interrupted;
    EXPECT_EQ(engine->position(Seat(0)), result.computed);
    EXPECT_EQ(result.computed, outcome == StepOutcome::done ? Tokens(1000) : Tokens(0));
    engine->clear(Seat(0));
  }
  EXPECT_TRUE(ended_early);
  const Sampled after = feed(*engine, Seat(0), prompt);
  EXPECT_EQ(after.token, expected.token);
  EXPECT_EQ(after.logprob, expected.logprob) << "the library goes on as if nothing had been";
}

EngineOptions apart(std::int64_t n_ubatch) {
  EngineOptions options = one_thread(n_ubatch);
  options.n_batch = options.n_ubatch;
  options.one_sequence_per_ubatch = true;
  return options;
}

TEST(LlamaApart, AStepHasRoomForAWholeUbatchAndARowOfEverySeat) {
  const auto engine =
      build(*load_test_model(tiny_model_path()), geometry(2048, 4, Layout::split), apart(64));
  EXPECT_EQ(engine->limits().ubatch, Tokens(64));
  ASSERT_GE(engine->limits().batch, Tokens(64 + 4));
  const auto chunk = text(1, 64), row = text(2, 1);
  const std::vector<RowGroup> groups{{Seat(0), Tokens(0), row},
                                     {Seat(1), Tokens(0), row},
                                     {Seat(2), Tokens(0), row},
                                     {Seat(3), Tokens(0), chunk}};
  std::vector<GroupResult> results(4);
  EXPECT_EQ(engine->step(groups, results), StepOutcome::done);
  EXPECT_EQ(engine->position(Seat(3)), Tokens(64));
}

TEST(LlamaApart, CompanyChangesNoBit) {
  const auto alone =
      build(*load_test_model(tiny_model_path()), geometry(2048, 4, Layout::split), apart(64));
  const auto engine =
      build(*load_test_model(tiny_model_path()), geometry(2048, 4, Layout::split), apart(64));
  const auto prompt = text(1, 30), other = text(2, 17);
  const Sampled expected = feed(*alone, Seat(0), prompt);
  SamplingParams params;
  params.temperature = 0.0F;
  params.n_probs = 1;
  auto sampler = tiny_vocabulary()->make_sampler(params, {});
  const std::vector<RowGroup> groups{{Seat(1), Tokens(0), other},
                                     {Seat(2), Tokens(0), prompt, sampler->get()},
                                     {Seat(3), Tokens(0), other}};
  std::vector<GroupResult> results(3);
  ASSERT_EQ(engine->step(groups, results), StepOutcome::done);
  ASSERT_TRUE(results[1].sampled.has_value());
  EXPECT_EQ(results[1].sampled->token, expected.token);
  EXPECT_EQ(results[1].sampled->logprob, expected.logprob);
}

TEST(LlamaApart, WhoIsCancelledIsLeftOutAndTheOthersAreWhole) {
  for (const RandomModelKind kind : {RandomModelKind::dense, RandomModelKind::sliding_window,
                                     RandomModelKind::recurrent, RandomModelKind::hybrid}) {
    const auto engine = build(*random_model(kind), geometry(2048, 4, Layout::split), apart(64));
    const auto prompt = text(1, 20);
    const std::atomic<bool> cancelled{true};
    const std::vector<RowGroup> groups{{Seat(0), Tokens(0), prompt},
                                       {Seat(1), Tokens(0), prompt, nullptr, &cancelled},
                                       {Seat(2), Tokens(0), prompt}};
    std::vector<GroupResult> results(3);
    EXPECT_EQ(engine->step(groups, results), StepOutcome::interrupted);
    EXPECT_EQ(results[0].computed, Tokens(20));
    EXPECT_EQ(results[1].computed, Tokens(0));
    EXPECT_EQ(results[2].computed, Tokens(20));
    EXPECT_EQ(engine->position(Seat(1)), Tokens(0));
    EXPECT_EQ(engine->position(Seat(2)), Tokens(20));
  }
}

TEST(LlamaCancel, OneWhoStillWaitsKeepsTheUbatchGoing) {
  const auto engine =
      build(*load_test_model(tiny_model_path()), geometry(1024, 2), one_thread(1024));
  const auto prompt = text(4, 300);
  std::atomic<bool> cancelled{false};
  const std::atomic<bool> waiting{false};
  const std::vector<RowGroup> groups{RowGroup{Seat(0), Tokens(0), prompt, nullptr, &cancelled},
                                     RowGroup{Seat(1), Tokens(0), prompt, nullptr, &waiting}};
  std::vector<GroupResult> results(2);
  std::thread canceller([&] { cancelled.store(true); });
  const StepOutcome outcome = engine->step(groups, results);
  canceller.join();
  EXPECT_EQ(results[1].computed, Tokens(300));
  EXPECT_TRUE(outcome == StepOutcome::done || results[0].computed == Tokens(0));
}

TEST(LlamaRanges, BytesDoNotDependOnTheNumberOfSeats) {
  const auto model = random_model(RandomModelKind::dense);
  const auto prompt = text(5, 40);
  std::vector<ByteBuffer> exports;
  for (const std::int32_t seats : {1, 3, 8}) {
    const auto engine = build(*model, geometry(512, seats), one_thread());
    feed(*engine, Seat(seats - 1), prompt);
    exports.emplace_back();
    ASSERT_TRUE(engine->export_range(Seat(seats - 1), Tokens(0), Tokens(40), exports.back()).ok());
  }
  EXPECT_EQ(exports[0], exports[1]);
  EXPECT_EQ(exports[0], exports[2]);
}

TEST(LlamaRanges, AnotherCacheTypeOrLayoutOfVIsForeign) {
  const auto model = random_model(RandomModelKind::dense);
  const auto prompt = text(6, 20);
  const auto engine = build(*model, geometry(512, 1), one_thread());
  feed(*engine, Seat(0), prompt);
  ByteBuffer bytes;
  ASSERT_TRUE(engine->export_range(Seat(0), Tokens(0), Tokens(20), bytes).ok());
  Geometry quantised = geometry(512, 1);
  quantised.cache_type_k = KvType::q8_0;
  EngineOptions transposed = one_thread();
  transposed.flash_attention = false;
  for (const auto& other :
       {build(*model, quantised, one_thread()), build(*model, geometry(512, 1), transposed)}) {
    ASSERT_TRUE(other->capabilities().move_ranges);
    const auto in = other->import_range(Seat(0), bytes);
    ASSERT_FALSE(in.ok());
    EXPECT_EQ(in.error(), MoveFault::foreign);
  }
}

TEST(LlamaRanges, MoveWithoutFlashAttentionToo) {
  const auto model = random_model(RandomModelKind::dense);
  EngineOptions options = one_thread();
  options.flash_attention = false;
  const auto from = build(*model, geometry(512, 2), options);
  const auto to = build(*model, geometry(1024, 1), options);
  feed(*from, Seat(1), text(7, 30));
  ByteBuffer bytes;
  ASSERT_TRUE(from->export_range(Seat(1), Tokens(0), Tokens(30), bytes).ok());
  ASSERT_TRUE(to->import_range(Seat(0), bytes).ok());
  const auto tail = text(8, 4);
  const Sampled stayed = feed(*from, Seat(1), tail);
  const Sampled moved = feed(*to, Seat(0), tail);
  EXPECT_EQ(stayed.token, moved.token);
  EXPECT_NEAR(stayed.logprob, moved.logprob, 1e-3);
}

// In the split layout, one sequence a step, a reply does not depend on its neighbours at all.
TEST(LlamaSplit, ASequenceStepsTheSameAloneAndInCompany) {
  const auto model = random_model(RandomModelKind::dense);
  const auto alone = build(*model, geometry(1024, 4, Layout::split), one_thread());
  const auto crowd = build(*model, geometry(1024, 4, Layout::split), one_thread());
  for (int seat = 0; seat < 3; ++seat) feed(*crowd, Seat(seat), text(20, 50 + seat));
  Sampled by_itself = feed(*alone, Seat(0), text(9, 30));
  Sampled in_company = feed(*crowd, Seat(3), text(9, 30));
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(by_itself.token, in_company.token);
    ASSERT_EQ(by_itself.logprob, in_company.logprob) << "to the last bit";
    feed(*crowd, Seat(i % 3), {TokenId{60}});
    by_itself = feed(*alone, Seat(0), {by_itself.token});
    in_company = feed(*crowd, Seat(3), {in_company.token});
  }
}

TEST(LlamaThreads, ManyThreadsAndTwoPoolsWork) {
  const auto model = random_model(RandomModelKind::dense);
  const auto prompt = text(10, 40);
  const auto reference = build(*model, geometry(512, 1), one_thread());
  const Sampled expected = feed(*reference, Seat(0), prompt);
  EngineOptions options = one_thread();
  options.threads = 2;
  options.threads_batch = 1;
  options.priority = -1;
  const auto engine = build(*model, geometry(512, 1), options);
  const Sampled sampled = feed(*engine, Seat(0), prompt);
  EXPECT_EQ(sampled.token, expected.token);
  feed(*engine, Seat(0), {sampled.token});
  options.threads = 1'000'000;  // Clamped, not attempted.
  options.threads_batch = 0;
  options.n_ubatch = Tokens(8);
  EXPECT_TRUE(model->build(geometry(512, 1), options).ok());
}

TEST(LlamaEngine, SamplersThatRunSideBySideEachTakeTheirOwnRow) {
  constexpr std::int32_t seats = 64;
  auto model = random_model(RandomModelKind::dense);
  ASSERT_GE(seats * model->info().n_vocab, 1 << 16) << "too little for more than one thread";
  EngineOptions options = one_thread(512);
  options.threads = 2;
  const auto together = build(*model, geometry(1024, seats), options);
  const auto alone = build(*model, geometry(256, 1), options);
  SamplingParams params;
  params.temperature = 0.0F;
  params.n_probs = 1;
  std::vector<std::unique_ptr<Sampler>> samplers;
  std::vector<std::vector<TokenId>> texts;
  std::vector<RowGroup> groups;
  for (std::int32_t s = 0; s < seats; ++s) {
    samplers.push_back(tiny_vocabulary()->make_sampler(params, {}).value());
    texts.push_back(text(static_cast<std::uint64_t>(s) + 1, 5));
  }
  for (std::int32_t s = 0; s < seats; ++s) {
    const auto i = static_cast<std::size_t>(s);
    groups.push_back({Seat(s), Tokens(0), texts[i], samplers[i].get(), nullptr});
  }
  std::vector<GroupResult> results(groups.size());
  ASSERT_EQ(together->step(groups, results), StepOutcome::done);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    ASSERT_TRUE(results[i].sampled);
    alone->clear(Seat(0));
    const Sampled own = feed(*alone, Seat(0), texts[i]);
    EXPECT_EQ(results[i].sampled->token, own.token) << "row " << i;
    EXPECT_NEAR(results[i].sampled->logprob, own.logprob, 0.01F);
  }
}

}  // namespace
}  // namespace fermata::engine::llama
