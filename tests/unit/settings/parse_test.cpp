#include "settings/parse.h"

#include "settings/values.h"
#include "support.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fermata::settings {
namespace {

Settings good(const std::vector<std::string>& words, const Environment& environment = {}) {
  auto result = parse(words, environment);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? result.value() : Settings{};
}

FaultKind kind_of(const std::vector<std::string>& words, const Environment& environment = {}) {
  const auto result = parse(words, environment);
  EXPECT_FALSE(result.ok());
  return result.ok() ? FaultKind{} : result.error().kind;
}

TEST(Parse, NothingGivenIsTheDefaults) {
  const Settings settings = good({});
  for (const SettingValue& value : list_values(settings)) EXPECT_TRUE(value.is_default);
  EXPECT_TRUE(settings.invocation.warnings.empty());
}

TEST(Parse, AUsualCommandLineOfLlamaServer) {
  const Settings settings = good({"-m",         "models/a b.gguf",
                                  "-c",         "4096",
                                  "-np",        "2",
                                  "-ngl",       "99",
                                  "-ctk",       "q8_0",
                                  "-ctv",       "q8_0",
                                  "-fa",        "on",
                                  "--host",     "0.0.0.0",
                                  "--port",     "8081",
                                  "--metrics",  "--no-slots",
                                  "--jinja",    "-cb",
                                  "--no-webui", "--temp",
                                  "0.2",        "-s",
                                  "42"});
  EXPECT_EQ(settings.model.path, "models/a b.gguf");
  EXPECT_EQ(settings.model.gpu_layers, 99);
  EXPECT_EQ(settings.context.n_ctx, Tokens(4096));
  EXPECT_EQ(settings.context.n_parallel, 2);
  EXPECT_EQ(settings.context.cache_type_k, "q8_0");
  EXPECT_TRUE(settings.context.kv_unified);
  EXPECT_EQ(settings.context.flash_attention, "on");
  EXPECT_EQ(settings.server.hosts, (std::vector<std::string>{"0.0.0.0"}));
  EXPECT_EQ(settings.server.port, 8081);
  EXPECT_TRUE(settings.server.metrics);
  EXPECT_FALSE(settings.server.slots);
  EXPECT_FLOAT_EQ(settings.sampling.temperature, 0.2F);
  EXPECT_EQ(settings.sampling.seed, 42);
  EXPECT_TRUE(settings.invocation.warnings.empty());
}

TEST(Parse, UnknownFlagNamesTheNearestOne) {
  EXPECT_EQ(fault_of({"--ctx-siez", "1"}), "unknown argument --ctx-siez: did you mean --ctx-size?");
  EXPECT_EQ(fault_of({"--no-kvunified"}),
            "unknown argument --no-kvunified: did you mean --no-kv-unified?");
  EXPECT_EQ(fault_of({"-ctx-size", "1"}), "unknown argument -ctx-size: did you mean --ctx-size?");
  EXPECT_EQ(fault_of({"--wholly-unheard-of"}), "unknown argument --wholly-unheard-of: see --help");
  EXPECT_EQ(kind_of({"--ctx-siez", "1"}), FaultKind::unknown_argument);
}

TEST(Parse, AWordThatBelongsToNothing) {
  EXPECT_EQ(fault_of({"model.gguf"}),
            "unexpected argument \"model.gguf\": settings begin with a dash, see --help");
  EXPECT_EQ(kind_of({""}), FaultKind::unexpected_argument);
}

TEST(Parse, MissingValueAtTheEndAndBeforeTheNextFlag) {
  EXPECT_EQ(fault_of({"--port"}), "--port needs a value: give a whole number from 0 to 65535");
  EXPECT_EQ(kind_of({"-m", "--port", "80"}), FaultKind::missing_value);
  EXPECT_EQ(kind_of({"-m", "--port=80"}), FaultKind::missing_value);
  EXPECT_EQ(good({"--model=--port"}).model.path, "--port");
}

TEST(Parse, AMissingTextIsNamed) {
  EXPECT_EQ(fault_of({"-m"}), "-m needs a value: give FNAME");
  EXPECT_EQ(fault_of({"--api-key", "--port", "0"}),
            "--api-key needs a value: give items separated by ','");
}

TEST(Parse, UsesOfAJoinedListAddUp) {
  const Settings settings =
      good({"--host", "127.0.0.1,::1", "--host", "a.sock", "--api-key", "k1", "--api-key=k2, k3"});
  EXPECT_EQ(settings.server.hosts, (std::vector<std::string>{"127.0.0.1", "::1", "a.sock"}));
  EXPECT_EQ(settings.security.api_keys, (std::vector<std::string>{"k1", "k2", "k3"}));
  EXPECT_TRUE(settings.invocation.warnings.empty());
  const Settings given = good({"--api-key", "k1"}, {{"LLAMA_API_KEY", "k2"}});
  EXPECT_EQ(given.security.api_keys, (std::vector<std::string>{"k1"}));
}

TEST(Parse, NoMessageAndNoListingShowsASecret) {
  EXPECT_EQ(fault_of({"--api-key", " , "}),
            "--api-key cannot be (hidden): give items separated by ','");
  for (const SettingValue& value : list_values(good({"--api-key", "good-key"}))) {
    EXPECT_EQ(value.value.find("good-key"), std::string::npos) << value.name;
  }
}

TEST(Parse, BadValueNamesRangeOrChoices) {
  EXPECT_EQ(fault_of({"-np", "0"}),
            "-np cannot be \"0\": give a whole number from 1 to 255, or -1");
  EXPECT_EQ(fault_of({"--top-p", "1.5"}), "--top-p cannot be \"1.5\": give a number from 0 to 1");
  EXPECT_EQ(fault_of({"--repeat-penalty", "0"}),
            "--repeat-penalty cannot be \"0\": give a number above 0");
  EXPECT_EQ(fault_of({"--dry-base", "0.5"}),
            "--dry-base cannot be \"0.5\": give a number, at least 1");
  EXPECT_EQ(fault_of({"-fa", "maybe"}), "-fa cannot be \"maybe\": give one of: on, off, auto");
  EXPECT_EQ(fault_of({"-ngl", "some"}),
            "-ngl cannot be \"some\": give a whole number from -2 to 2147483647, or auto, or all");
  EXPECT_EQ(
      fault_of({"--samplers", "top_k;tip_k"}),
      "--samplers cannot be \"top_k;tip_k\": give items separated by ';', of: penalties, dry, "
      "top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature, infill, adaptive_p");
  for (const char* text : {"", " ", "12abc", "1e3", "0x10", "99999999999999999999", "-2", "1.5"}) {
    EXPECT_EQ(kind_of({"-c", text}), FaultKind::bad_value) << text;
  }
  for (const char* text : {"nan", "inf", "-inf", "1e39", "0,5", ""}) {
    EXPECT_EQ(kind_of({"--temp", text}), FaultKind::bad_value) << text;
  }
}

TEST(Parse, MessagesStayOneLineWhateverSomebodyTyped) {
  EXPECT_EQ(fault_of({"--port", "1\n2\x1b[0m"}),
            "--port cannot be \"1?2?[0m\": give a whole number from 0 to 65535");
  const std::string message = fault_of({"--port", std::string(100000, 'x')});
  EXPECT_LT(message.size(), 200U);
  // A character is never cut in two.
  std::string umlauts = "x";
  for (int i = 0; i < 100; ++i) umlauts += "\xC3\xA4";
  EXPECT_NE(fault_of({"--port", umlauts}).find("\xC3\xA4...\""), std::string::npos);
}

TEST(Parse, EqualsSignWorksForLongNames) {
  EXPECT_EQ(good({"--ctx-size=512"}).context.n_ctx, Tokens(512));
  EXPECT_EQ(good({"--chat-template=a=b"}).chat.template_text, "a=b");
  EXPECT_FALSE(good({"--slots=off"}).server.slots);
  EXPECT_EQ(kind_of({"--slots=perhaps"}), FaultKind::bad_value);
  EXPECT_EQ(fault_of({"--no-slots=true"}), "--no-slots takes no value");
  EXPECT_EQ(fault_of({"--mlock=true"}), "--mlock takes no value");
  EXPECT_EQ(kind_of({"-c=512"}), FaultKind::unknown_argument);
}

TEST(Parse, UnderscoresStandForDashesInLongNames) {
  EXPECT_EQ(good({"--ctx_size", "512"}).context.n_ctx, Tokens(512));
  EXPECT_EQ(good({"--chat_template=a_b"}).chat.template_text, "a_b");
}

TEST(Parse, TheLastOneCountsAndAWarningSaysSo) {
  EXPECT_EQ(good({"-c", "1024", "--ctx-size", "2048"}).context.n_ctx, Tokens(2048));
  EXPECT_EQ(warnings_of({"-c", "1024", "--ctx-size", "2048"}),
            "--ctx-size is given more than once; the last one counts\n");
  EXPECT_TRUE(good({"--no-slots", "--slots"}).server.slots);
}

TEST(Parse, HelpAndVersionEndTheReading) {
  EXPECT_TRUE(good({"-c", "512", "--help", "--nonsense"}).invocation.help);
  EXPECT_TRUE(good({"--usage"}).invocation.help);
  EXPECT_TRUE(good({"--version"}, {{"LLAMA_ARG_PORT", "x"}}).invocation.version);
  EXPECT_EQ(kind_of({"--nonsense", "--help"}), FaultKind::unknown_argument);
}

TEST(Parse, DeprecatedFlagsStillWorkAndSaySo) {
  EXPECT_EQ(good({"--mlock"}).model.load_mode, "mlock");
  EXPECT_EQ(good({"--no-mmap"}).model.load_mode, "none");
  EXPECT_EQ(good({"--mmap"}).model.load_mode, "mmap");
  EXPECT_EQ(good({"-dio"}).model.load_mode, "dio");
  EXPECT_EQ(warnings_of({"--no-mmap"}), "--no-mmap is deprecated; use --load-mode\n");
  EXPECT_EQ(warnings_of({"--defrag-thold", "0.1"}),
            "--defrag-thold is deprecated and has no effect\n");
  EXPECT_EQ(warnings_of({}, {{"LLAMA_ARG_DEFRAG_THOLD", "0.1"}}),
            "environment variable LLAMA_ARG_DEFRAG_THOLD (--defrag-thold) is deprecated and has no "
            "effect\n");
  EXPECT_EQ(kind_of({"--defrag-thold"}), FaultKind::missing_value);
}

TEST(Parse, VerboseIsTheHighestVerbosity) {
  EXPECT_EQ(good({"-v"}).log.verbosity, verbosity_debug);
  EXPECT_EQ(good({"-v", "-lv", "2"}).log.verbosity, verbosity_warning);
}

TEST(Parse, ListsOfSamplersInAllSpellings) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(good({"--samplers", "top-k; Temp;nucleus"}).sampling.samplers,
            (Names{"top_k", "temperature", "top_p"}));
  EXPECT_EQ(good({"--sampler-seq", "kpt"}).sampling.samplers,
            (Names{"top_k", "top_p", "temperature"}));
  EXPECT_EQ(good({"-a", " a , b,"}).model.aliases, (Names{"a", "b"}));
  for (const char* flag : {"--samplers", "--sampler-seq", "--host", "-a"}) {
    EXPECT_EQ(kind_of({flag, ""}), FaultKind::bad_value) << flag;
    EXPECT_EQ(kind_of({flag, " "}), FaultKind::bad_value) << flag;
  }
  EXPECT_EQ(kind_of({"--host", " , "}), FaultKind::bad_value);
  EXPECT_EQ(kind_of({"--sampler-seq", "kpz"}), FaultKind::bad_value);
}

TEST(Parse, SequenceBreakersReplaceTheDefaultsAndThenGrow) {
  using Names = std::vector<std::string>;
  const std::string flag = "--dry-sequence-breaker";
  EXPECT_EQ(good({flag, "\\n", flag, "a\\tb\\x"}).sampling.dry_sequence_breakers,
            (Names{"\n", "a\tb\\x"}));
  EXPECT_TRUE(good({flag, "none"}).sampling.dry_sequence_breakers.empty());
  EXPECT_EQ(warnings_of({flag, "x", flag, "y"}), "");
}

TEST(Parse, EscapesAreReadUnlessTheyAreNotWanted) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(good({"-r", "a\\n", "-r", "b"}).sampling.reverse_prompts, (Names{"a\n", "b"}));
  const Settings raw = good({"-r", "a\\n", "--no-escape", "--dry-sequence-breaker", "\\t"});
  EXPECT_EQ(raw.sampling.reverse_prompts, (Names{"a\\n"}));
  EXPECT_EQ(raw.sampling.dry_sequence_breakers, (Names{"\\t"}));
}

TEST(Parse, ABiasIsATokenASignAndANumber) {
  const Settings settings = good({"-l", "15043+1.5", "--logit-bias", "7-inf"});
  ASSERT_EQ(settings.sampling.logit_bias.size(), 2U);
  EXPECT_EQ(logit_bias_of(settings.sampling.logit_bias[0])->token, 15043);
  EXPECT_EQ(logit_bias_of(settings.sampling.logit_bias[0])->bias, 1.5F);
  EXPECT_TRUE(std::isinf(logit_bias_of(settings.sampling.logit_bias[1])->bias));
  for (const char* bad : {"5", "+1", "5*1", "5+", "5+x", "5+1x", "-5+1", "5+inf", "5+-1", "5-nan",
                          "99999999999+1", "5 +1"}) {
    EXPECT_EQ(logit_bias_of(bad), std::nullopt) << bad;
    EXPECT_EQ(kind_of({"-l", bad}), FaultKind::conflict) << bad;
  }
}

TEST(Parse, OfTheGrammarsOneAtMost) {
  EXPECT_EQ(good({"--grammar", "root ::= \"a\""}).sampling.grammar, "root ::= \"a\"");
  EXPECT_EQ(kind_of({"--grammar", "g", "-j", "{}"}), FaultKind::conflict);
  EXPECT_EQ(kind_of({"-jf", "f", "--grammar-file", "g"}), FaultKind::conflict);
}

TEST(Parse, OfTheBatchSizesTheOneNobodyGaveGivesWay) {
  EXPECT_EQ(good({"-b", "256"}).batch.n_ubatch, Tokens(256));
  EXPECT_EQ(good({"-ub", "4096"}).batch.n_batch, Tokens(4096));
  EXPECT_EQ(good({"-ub", "4096"}, {{"LLAMA_ARG_BATCH", "8192"}}).batch.n_batch, Tokens(8192));
  EXPECT_EQ(fault_of({"-b", "256", "-ub", "512"}),
            "--ubatch-size 512 is larger than --batch-size 256: lower it, or raise that");
  EXPECT_EQ(kind_of({"-b", "256", "-ub", "512"}), FaultKind::conflict);
}

TEST(Parse, OfTheTwoTemplatesTheLastOneCounts) {
  const Settings settings = good({"--chat-template-file", "f"}, {{"LLAMA_ARG_CHAT_TEMPLATE", "t"}});
  EXPECT_EQ(settings.chat.template_file, "f");
  EXPECT_EQ(settings.chat.template_text, "");
  EXPECT_EQ(settings.invocation.warnings,
            (std::vector<std::string>{"--chat-template-file replaces --chat-template"}));
}

TEST(Parse, RemovedFlagsNameTheirSuccessor) {
  EXPECT_EQ(fault_of({"--draft-max", "4"}),
            "--draft-max has been removed, in llama-server too; use --spec-draft-n-max or "
            "--spec-ngram-mod-n-max");
  EXPECT_EQ(kind_of({}, {{"LLAMA_ARG_DRAFT_MAX", "4"}}), FaultKind::not_supported);
}

TEST(Parse, WhatIsAlwaysOnCannotBeTurnedOff) {
  EXPECT_EQ(fault_of({"--no-jinja"}), "--no-jinja is not supported yet");
  EXPECT_EQ(fault_of({"-nocb"}), "-nocb is not supported yet");
  EXPECT_EQ(fault_of({}, {{"LLAMA_ARG_JINJA", "0"}}),
            "environment variable LLAMA_ARG_JINJA (--jinja) cannot be \"0\": it is always on, no "
            "other value is supported yet");
  EXPECT_EQ(warnings_of({"--jinja", "-cb", "--offline"},
                        {{"LLAMA_ARG_JINJA", "1"}, {"LLAMA_ARG_OFFLINE", "0"}}),
            "");
}

TEST(Parse, WhatAsksForNothingIsAccepted) {
  EXPECT_EQ(warnings_of({"--cache-reuse", "0", "--fit", "off", "--spec-type", "none",
                         "--no-context-shift", "--no-mmproj"}),
            "");
  EXPECT_EQ(fault_of({"--cache-reuse", "4096"}),
            "--cache-reuse is not supported yet; only the value 0 is accepted");
  EXPECT_EQ(kind_of({"--cache-reuse", "off"}), FaultKind::not_supported);
  EXPECT_EQ(fault_of({"--no-host"}), "--no-host is not supported yet");
}

// Whatever the words: either settings without a fault, or one line that says what is wrong.
TEST(Parse, AnyWordsGiveSettingsOrOneLine) {
  const std::vector<std::string> values = {"1",  "-1", "2", "0.5", "on", "auto", "f16",
                                           "/x", "",   "-", "=",   "--", "\n"};
  std::vector<std::string> supported;
  std::vector<std::string> others;
  for (const Row* row : table()) {
    if (row->group == Group::general) continue;
    std::vector<std::string>& names = is_supported(*row) ? supported : others;
    names.insert(names.end(), row->names.begin(), row->names.end());
    names.insert(names.end(), row->off_names.begin(), row->off_names.end());
  }
  const auto word = rc::gen::weightedOneOf<std::string>({{40, rc::gen::elementOf(supported)},
                                                         {40, rc::gen::elementOf(values)},
                                                         {1, rc::gen::elementOf(others)},
                                                         {1, rc::gen::arbitrary<std::string>()}});
  EXPECT_TRUE(rc::check([&] {
    const auto words = *rc::gen::container<std::vector<std::string>>(word);
    const auto result = parse(words);
    RC_TAG(result.ok());
    if (result.ok()) {
      RC_ASSERT(!find_fault(result.value()));
    } else {
      const std::string& message = result.error().message;
      RC_ASSERT(!message.empty());
      RC_ASSERT(message.find('\n') == std::string::npos);
      RC_ASSERT(message.size() < 600U);
    }
  }));
}

}  // namespace
}  // namespace fermata::settings
