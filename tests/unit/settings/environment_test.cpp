#include "support.h"

#include <array>

#include <gtest/gtest.h>

namespace fermata::settings {
namespace {

Settings good(const std::vector<std::string>& words, const Environment& environment) {
  auto result = parse(words, environment);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? result.value() : Settings{};
}

TEST(Environment, IsReadFromTheBlockOfTheProcess) {
  const std::array<const char*, 5> block = {"A=1", "EMPTY=", "B=x=y", "nonsense", nullptr};
  EXPECT_EQ(environment_of(block.data()), (Environment{{"A", "1"}, {"EMPTY", ""}, {"B", "x=y"}}));
  EXPECT_TRUE(environment_of(nullptr).empty());
}

TEST(Environment, AnArgumentBeatsItsVariable) {
  const Environment environment = {{"LLAMA_ARG_CTX_SIZE", "1024"}};
  EXPECT_EQ(good({}, environment).context.n_ctx, Tokens(1024));
  EXPECT_EQ(good({"-c", "2048"}, environment).context.n_ctx, Tokens(2048));
  EXPECT_EQ(warnings_of({"-c", "2048"}, environment),
            "environment variable LLAMA_ARG_CTX_SIZE (--ctx-size) is overridden by the command "
            "line\n");
  // Also when only the argument is right.
  EXPECT_EQ(good({"-c", "2048"}, {{"LLAMA_ARG_CTX_SIZE", "x"}}).context.n_ctx, Tokens(2048));
  // And when it is another way to write the same setting.
  EXPECT_EQ(good({"--mlock"}, {{"LLAMA_ARG_LOAD_MODE", "dio"}}).model.load_mode, "mlock");
  EXPECT_EQ(good({"-lm", "dio"}, {{"LLAMA_ARG_MLOCK", "1"}}).model.load_mode, "dio");
}

TEST(Environment, BooleansInAllSpellings) {
  for (const char* text : {"1", "true", "on", "enabled"}) {
    EXPECT_TRUE(good({}, {{"LLAMA_ARG_ENDPOINT_METRICS", text}}).server.metrics) << text;
  }
  for (const char* text : {"0", "false", "off", "disabled"}) {
    EXPECT_FALSE(good({}, {{"LLAMA_ARG_ENDPOINT_SLOTS", text}}).server.slots) << text;
  }
  EXPECT_EQ(fault_of({}, {{"LLAMA_ARG_ENDPOINT_SLOTS", "yes"}}),
            "environment variable LLAMA_ARG_ENDPOINT_SLOTS (--slots) cannot be \"yes\": give true, "
            "on, enabled or 1; false, off, disabled or 0");
}

TEST(Environment, NoVariantTurnsOffWhateverItsValue) {
  EXPECT_FALSE(good({}, {{"LLAMA_ARG_NO_KV_OFFLOAD", ""}}).context.offload_kv);
  EXPECT_FALSE(good({}, {{"LLAMA_ARG_NO_KV_OFFLOAD", "1"}, {"LLAMA_ARG_KV_OFFLOAD", "1"}})
                   .context.offload_kv);
  EXPECT_EQ(good({}, {{"LLAMA_ARG_NO_MMAP", "1"}}).model.load_mode, "none");
}

TEST(Environment, FlagsWithAMeaningOfTheirOwn) {
  EXPECT_EQ(good({}, {{"LLAMA_ARG_MLOCK", "1"}}).model.load_mode, "mlock");
  EXPECT_EQ(good({}, {{"LLAMA_ARG_MLOCK", "0"}}).model.load_mode, "auto");
  EXPECT_EQ(good({}, {{"LLAMA_ARG_MMAP", "0"}}).model.load_mode, "none");
  EXPECT_EQ(fault_of({}, {{"LLAMA_ARG_MLOCK", "x"}}),
            "environment variable LLAMA_ARG_MLOCK (--mlock) cannot be \"x\": give true or false");
}

TEST(Environment, AnEmptyVariableIsNotSet) {
  EXPECT_EQ(good({}, {{"LLAMA_ARG_PORT", ""}, {"LLAMA_API_KEY", ""}}).server.port, 8080);
}

TEST(Environment, BadValueNamesTheVariable) {
  const auto result = parse({}, {{"FERMATA_QUEUE_MAX", "0"}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, FaultKind::bad_value);
  EXPECT_EQ(result.error().name, "FERMATA_QUEUE_MAX");
  EXPECT_EQ(result.error().message,
            "environment variable FERMATA_QUEUE_MAX (--queue-max) cannot be \"0\": give a whole "
            "number from 1 to 1000000");
}

TEST(Environment, UnsupportedVariablesAreFaults) {
  EXPECT_EQ(fault_of({}, {{"AIP_MODE", "PREDICTION"}}),
            "environment variable AIP_MODE is not supported yet");
  EXPECT_EQ(fault_of({}, {{"LLAMA_ARG_RERANKING", "1"}}),
            "environment variable LLAMA_ARG_RERANKING (--reranking) is not supported yet");
  EXPECT_EQ(warnings_of({}, {{"LLAMA_ARG_EMBEDDINGS", "0"}, {"LLAMA_ARG_NO_CONTEXT_SHIFT", "1"}}),
            "");
}

TEST(Environment, UnknownVariablesAreWarnings) {
  EXPECT_EQ(warnings_of({}, {{"LLAMA_ARG_CTX_SIZ", "1"}}),
            "environment variable LLAMA_ARG_CTX_SIZ is not known and was ignored; did you mean "
            "LLAMA_ARG_CTX_SIZE?\n");
  EXPECT_EQ(warnings_of({}, {{"LLAMA_ARG_QQQQQQQQQQQQQQQQQQ", "1"}}),
            "environment variable LLAMA_ARG_QQQQQQQQQQQQQQQQQQ is not known and was ignored\n");
  EXPECT_EQ(warnings_of({}, {{"FERMATA_QUEUEMAX", "1"}}),
            "environment variable FERMATA_QUEUEMAX is not known and was ignored; did you mean "
            "FERMATA_QUEUE_MAX?\n");
  EXPECT_EQ(warnings_of({}, {{"FERMATA_CACHE_FOLDER_OF_THE_BUILD", "1"}, {"HOME", "/"}}), "");
}

}  // namespace
}  // namespace fermata::settings
