#include "settings/settings.h"

#include "settings/values.h"
#include "support.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fermata::settings {
namespace {

TEST(Settings, FaultsBetweenSettingsNameTheMend) {
  EXPECT_EQ(fault_of({"-ctv", "q8_0", "-fa", "off"}),
            "--cache-type-v q8_0 needs flash attention: give --flash-attn auto, or --cache-type-v "
            "f16");
  EXPECT_EQ(fault_of({"-ctk", "q8_0", "-fa", "off"}), "");
  EXPECT_EQ(fault_of({"-ctv", "bf16", "-fa", "off"}), "");
  EXPECT_EQ(fault_of({"-c", "3"}),
            "--ctx-size 3 is less than one cell for each of 4 slots: raise it, or lower "
            "--parallel");
  EXPECT_EQ(fault_of({"-c", "3", "-np", "3"}), "");
  EXPECT_EQ(fault_of({"--api-prefix", "llm"}),
            "--api-prefix must begin with a slash and end without one, like /llm");
  EXPECT_NE(fault_of({"--api-prefix", "/llm/"}), "");
  EXPECT_NE(fault_of({"--api-prefix", "/"}), "");
  EXPECT_EQ(fault_of({"--api-prefix", "/llm"}), "");
}

TEST(Settings, StrictExactnessNeedsAPlaceForBytes) {
  EXPECT_NE(fault_of({"--exactness", "strict", "--preempt-ram", "0"}), "");
  EXPECT_EQ(fault_of({"--exactness", "strict", "--preempt-ram", "0", "--page-dir", "x"}), "");
  EXPECT_EQ(fault_of({"--exactness", "strict"}), "");
  EXPECT_NE(fault_of({"--exactness", "exact"}), "");
}

TEST(Settings, DeterministicImpliesTheSplitLayoutAndRefusesTheOther) {
  const auto plain = parse({});
  const auto result = parse({"--deterministic"});
  ASSERT_TRUE(plain.ok() && result.ok());
  EXPECT_TRUE(plain->context.kv_unified && !plain->context.deterministic);
  EXPECT_TRUE(!result->context.kv_unified && result->context.deterministic);
  EXPECT_EQ(fault_of({"--deterministic", "--no-kv-unified"}), "");
  EXPECT_NE(fault_of({"--deterministic", "--context-shift"}), "");
  EXPECT_NE(fault_of({"--context-shift", "--preempt-policy", "admission-only"}), "");
  EXPECT_EQ(fault_of({"--context-shift", "--keep", "-1"}), "");
  EXPECT_EQ(fault_of({"--deterministic", "--kv-unified"}),
            "--deterministic gives every slot its own cells: leave --kv-unified out, or "
            "--deterministic");
  const auto by_variable = parse({"-kvu"}, {{"FERMATA_DETERMINISTIC", "1"}});
  ASSERT_FALSE(by_variable.ok());
  EXPECT_EQ(by_variable.error().kind, FaultKind::conflict);
}

TEST(Settings, ValuesSetByCodeAreCheckedToo) {
  Settings settings;
  settings.server.port = 70000;
  EXPECT_EQ(find_fault(settings),
            "--port cannot be \"70000\": give a whole number from 0 to 65535");
  settings = {};
  settings.context.cache_type_k = "q9";
  EXPECT_TRUE(find_fault(settings).value_or("").starts_with("--cache-type-k cannot be \"q9\""));
  settings = {};
  settings.server.hosts.clear();
  EXPECT_TRUE(find_fault(settings).value_or("").starts_with("--host cannot be \"\""));
  settings = {};
  settings.chat.template_text = "a";
  settings.chat.template_file = "b";
  EXPECT_EQ(find_fault(settings),
            "--chat-template and --chat-template-file exclude each other: give one");
}

TEST(Settings, ListingHasEachSettingOnce) {
  const auto result = parse({"-c", "4096", "--top-p", "0.5", "--sampler-seq", "k"});
  ASSERT_TRUE(result.ok());
  const std::vector<SettingValue> values = list_values(result.value());
  const auto find = [&](std::string_view name) {
    return std::ranges::find(values, name, &SettingValue::name);
  };
  ASSERT_NE(find("ctx-size"), values.end());
  EXPECT_EQ(find("ctx-size")->value, "4096");
  EXPECT_FALSE(find("ctx-size")->is_default);
  EXPECT_EQ(find("ctx-size")->change, Change::rebuild);
  EXPECT_EQ(find("top-p")->value, "0.5");
  EXPECT_EQ(find("samplers")->value, "top_k");
  EXPECT_EQ(find("n-gpu-layers")->value, "auto");
  EXPECT_TRUE(find("port")->is_default);
  for (const std::string_view absent : {"sampling-seq", "mlock", "log-verbose", "help", "jinja"}) {
    EXPECT_EQ(find(absent), values.end()) << absent;
  }
  for (const SettingValue& value : values) {
    EXPECT_EQ(std::ranges::count(values, value.name, &SettingValue::name), 1) << value.name;
  }
}

}  // namespace
}  // namespace fermata::settings
