// What a client, a flag or a damaged file can ask for and the library would not survive: each of
// these ended a process or filled its memory before there was a guard.
#include "base/random.h"
#include "engine/engine.h"
#include "engine/llama/grammar_guard.h"
#include "engine/llama/state_format.h"
#include "engine/vocabulary.h"
#include "support/llama_models.h"

#include <limits>
#include <string>
#include <vector>

#include <gguf.h>
#include <gtest/gtest.h>

namespace fermata::engine::llama {
namespace {

using fermata::testing::load_test_model;
using fermata::testing::ModelFolder;
using fermata::testing::tiny_model_path;
using fermata::testing::tiny_vocabulary;

std::string times(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

EngineOptions one_thread() {
  EngineOptions options;
  options.threads = 1;
  options.poll = 0;
  return options;
}

Geometry geometry(std::int64_t n_ctx, std::int32_t n_parallel, Layout layout = Layout::pooled) {
  Geometry out;
  out.n_ctx = Tokens(n_ctx);
  out.n_parallel = n_parallel;
  out.layout = layout;
  return out;
}

// --- contexts -----------------------------------------------------------------------------------

TEST(ContextGuards, ShapesThatTheLibraryAbortsOnAreFaults) {
  const auto model = load_test_model(tiny_model_path());
  const auto refused = [&](const Geometry& shape, const EngineOptions& options) {
    const auto built = model->build(shape, options);
    EXPECT_FALSE(built.ok());
    if (built.ok()) return std::string();
    EXPECT_EQ(built.error().message.find('\n'), std::string::npos);
    return built.error().message;
  };
  EXPECT_NE(refused(geometry(1, 4), one_thread()), "") << "less cells than sequences";
  EXPECT_NE(refused(geometry(1024, 0), one_thread()), "");
  EXPECT_NE(refused(geometry(1024, 256), one_thread()), "");
  EXPECT_NE(refused(geometry(-5, 1), one_thread()), "");
  EngineOptions no_batch = one_thread();
  no_batch.n_batch = Tokens(0);
  EXPECT_NE(refused(geometry(1024, 1), no_batch), "");
  EngineOptions no_flash = one_thread();
  no_flash.flash_attention = false;
  Geometry quantised = geometry(1024, 1);
  quantised.cache_type_v = KvType::q8_0;
  EXPECT_NE(refused(quantised, no_flash).find("flash attention"), std::string::npos);
}

TEST(ContextGuards, SmallestAndWidestShapesWork) {
  const auto model = load_test_model(tiny_model_path());
  for (const Layout layout : {Layout::pooled, Layout::split}) {
    for (const Geometry& shape :
         {geometry(1, 1, layout), geometry(4, 4, layout), geometry(255, 255, layout)}) {
      EngineOptions options = one_thread();
      options.n_batch = Tokens(1);
      options.n_ubatch = Tokens(1);
      const auto built = model->build(shape, options);
      ASSERT_TRUE(built.ok()) << built.error().message;
      const std::vector<TokenId> token{TokenId{65}};
      const Seat last((*built)->limits().seats - 1);
      const RowGroup group{last, Tokens(0), token, nullptr, nullptr};
      GroupResult result;
      EXPECT_EQ((*built)->step({&group, 1}, {&result, 1}), StepOutcome::done);
      EXPECT_EQ((*built)->position(last), Tokens(1));
    }
  }
}

TEST(ContextGuards, AContextThatNoMachineHoldsIsRefusedBeforeItIsTried) {
  for (const RandomModelKind kind :
       {RandomModelKind::dense, RandomModelKind::sliding_window, RandomModelKind::hybrid}) {
    const auto model = load_test_model(ModelFolder::instance().random_model(kind, 1));
    Geometry shape = geometry(n_ctx_max.value, 1);
    shape.cache_type_k = shape.cache_type_v = KvType::f32;
    EngineOptions options = one_thread();
    options.n_ubatch = Tokens(2048);
    const auto built = model->build(shape, options);
    ASSERT_FALSE(built.ok());
    EXPECT_NE(built.error().message.find("GiB"), std::string::npos) << built.error().message;
  }
}

TEST(ContextGuards, CacheTypesMustDivideTheHeads) {
  CacheShape shape;
  shape.layers = {LayerWidths{160, 160}};
  EXPECT_EQ(find_type_fault(shape, 80, 80), "");
  shape.k = GGML_TYPE_Q8_0;
  EXPECT_NE(find_type_fault(shape, 80, 80).find("cache_type_k q8_0"), std::string::npos);
  EXPECT_EQ(find_type_fault(shape, 32, 80), "");
  shape.v = GGML_TYPE_Q4_0;
  EXPECT_NE(find_type_fault(shape, 32, 80).find("cache_type_v q4_0"), std::string::npos);
  shape.layers = {LayerWidths{160, 48}};
  EXPECT_NE(find_type_fault(shape, 32, 32).find("row of 48"), std::string::npos);
}

TEST(ContextGuards, EveryCacheTypeComputes) {
  const auto model = load_test_model(tiny_model_path());
  for (const KvType type : {KvType::f32, KvType::f16, KvType::bf16, KvType::q8_0, KvType::q4_0,
                            KvType::q4_1, KvType::iq4_nl, KvType::q5_0, KvType::q5_1}) {
    Geometry shape = geometry(256, 1);
    shape.cache_type_k = shape.cache_type_v = type;
    const auto built = model->build(shape, one_thread());
    ASSERT_TRUE(built.ok()) << name(type) << ": " << built.error().message;
    const std::vector<TokenId> text(20, TokenId{70});
    const RowGroup group{Seat(0), Tokens(0), text, nullptr, nullptr};
    GroupResult result;
    EXPECT_EQ((*built)->step({&group, 1}, {&result, 1}), StepOutcome::done) << name(type);
    ByteBuffer bytes;
    EXPECT_TRUE((*built)->export_range(Seat(0), Tokens(0), Tokens(20), bytes).ok()) << name(type);
  }
}

// --- grammars -----------------------------------------------------------------------------------

struct BadGrammar {
  const char* name;
  std::string text;
};

std::vector<BadGrammar> bad_grammars() {
  std::string chain = "root ::= a0\n";
  std::string branches = "root ::= a0\n";
  const auto rule = [](int i) {
    std::string out = "a";
    for (const char c : std::to_string(i)) out += static_cast<char>('a' + (c - '0'));
    return out;
  };
  chain = "root ::= " + rule(0) + "\n";
  branches = chain;
  for (int i = 0; i < 20000; ++i) chain += rule(i) + " ::= " + rule(i + 1) + "\n";
  chain += rule(20000) + " ::= \"x\"\n";
  for (int i = 0; i < 40; ++i) {
    branches += rule(i) + " ::= " + rule(i + 1) + " \"x\" | " + rule(i + 1) + " \"y\"\n";
  }
  branches += rule(40) + " ::= \"z\"\n";
  return {
      {"nesting overflows the stack",
       "root ::= " + times("(", 60000) + "\"a\"" + times(")", 60000)},
      {"llguidance aborts", "%llguidance {}\nstart: \"a\""},
      {"an empty rule hides left recursion", "root ::= a root \"x\"\na ::= b\nb ::= \"\" | \"b\""},
      {"left recursion", "root ::= root \"x\" | \"y\""},
      {"a rule that is itself", "root ::= root | \"x\""},
      {"a repeat of what can be nothing", "root ::= a*\na ::= \"x\" | \"\""},
      {"indirect left recursion", "root ::= a \"x\"\na ::= root \"y\" | \"z\""},
      {"a repeat that ends before it begins", "root ::= \"a\"{5,2}"},
      {"a repeat of a long literal", "root ::= \"" + times("a", 200000) + "\"{1999}"},
      {"repeats of repeats", "root ::= (\"a\" | \"b\"{1,50}){1,50}"},
      {"a very large repeat", "root ::= \"a\"{4000000000}"},
      {"a chain of beginnings overflows the stack", chain},
      {"beginnings double at every level", branches},
      {"no rule", ""},
      {"no root", "a ::= \"x\""},
      {"an undefined rule", "root ::= b"},
      {"no definition", "root"},
      {"an open literal", "root ::= \"abc"},
      {"an open class", "root ::= [abc"},
      {"an empty class", "root ::= []"},
      {"an open group", "root ::= (\"a\""},
      {"an open repeat", "root ::= \"a\"{2"},
      {"nothing to repeat", "root ::= *"},
      {"an unknown escape", "root ::= \"\\q\""},
      {"a token that is none", "root ::= <no such token at all>"},
      {"broken UTF-8", "root ::= \"\xff\""},
      {"a NUL", std::string("root ::= \"a\"\0 )", 15)},
      {"too long", "root ::= \"a\"" + times(" ", 1 << 20)},
  };
}

TEST(GrammarGuards, BadGrammarsAreTheClientsFault) {
  const auto vocabulary = tiny_vocabulary();
  for (const auto& [what, text] : bad_grammars()) {
    SamplingParams params;
    params.grammar = text;
    params.grammar_origin = GrammarOrigin::client;
    if (text.empty()) continue;  // No grammar at all.
    const auto made = vocabulary->make_sampler(params, {});
    ASSERT_FALSE(made.ok()) << what;
    EXPECT_NE(made.error().message.find("grammar"), std::string::npos) << what;
    EXPECT_EQ(made.error().message.find('\n'), std::string::npos) << what;
    EXPECT_LT(made.error().message.size(), 300U) << what;
  }
}

TEST(GrammarGuards, FaultsNameTheLine) {
  const IsToken none = [](std::string_view) { return false; };
  EXPECT_EQ(find_grammar_fault("root ::= a\na ::= (\n", none).substr(0, 7), "line 3:");
  EXPECT_EQ(find_grammar_fault("root ::= b", none), "rule 'b' is not defined");
  EXPECT_EQ(find_grammar_fault("a ::= \"x\"", none), "there is no rule 'root'");
}

TEST(GrammarGuards, GoodGrammarsPassTheGuardAndTheLibrary) {
  const std::vector<std::string> good = {
      "root ::= \"a\"",
      "root::=\"a\"|\"b\"",
      "# comment\nroot ::= (\n  \"a\" | # why\n  \"b\"\n)\n",
      "root ::= [a-zA-Z_] [^\"\\\\\\x00-\\x1F]* \"\\u00e9\" .",
      "root ::= (\"a\"?)* \"b\"",
      "root ::= (\"a\"? \"b\"?)+ (\"c\" | \"\")",
      "root ::= \"x\"{3} \"y\"{0,5} \"z\"{2,} \"w\"{0}",
      "root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
      "root ::= <|im_start|> \"hi\" !<[5]>\r\n",
      "root ::= \"" + times("long ", 5000) + "\"",
      "root ::= " + times("(", 200) + "\"a\"" + times(")", 200),
      "a ::= \"1\"\nroot ::= a a\na ::= \"2\"",
  };
  const auto vocabulary = tiny_vocabulary();
  for (const std::string& text : good) {
    SamplingParams params;
    params.grammar = text;
    params.grammar_origin = GrammarOrigin::client;
    const auto made = vocabulary->make_sampler(params, {});
    EXPECT_TRUE(made.ok()) << text.substr(0, 80) << ": " << made.error().message;
  }
}

TEST(GrammarGuards, GrammarsOfSchemasPass) {
  std::string many = R"({"enum":[)";
  for (int i = 0; i < 5000; ++i) many += "\"value " + std::to_string(i) + "\",";
  many.back() = ']';
  many += "}";
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 100; ++i) {
    wide += "\"p" + std::to_string(i) + R"(":{"type":"array","items":{"type":"number"}},)";
  }
  wide.back() = '}';
  wide += "}";
  const auto vocabulary = tiny_vocabulary();
  for (const std::string& schema :
       {std::string("{}"), std::string(R"({"type":"string","minLength":3,"maxLength":1500})"),
        std::string(R"({"type":"string","pattern":"^[a-z]{3}(-[0-9]+)?$"})"),
        std::string(R"({"$defs":{"t":{"type":"object","properties":{"kids":{"type":"array",
          "items":{"$ref":"#/$defs/t"}}}}},"$ref":"#/$defs/t"})"),
        many, wide}) {
    const auto grammar = vocabulary->grammar_from_schema(schema);
    ASSERT_TRUE(grammar.ok()) << grammar.error().message;
    SamplingParams params;
    params.grammar = *grammar;
    params.grammar_origin = GrammarOrigin::json_schema;
    const auto made = vocabulary->make_sampler(params, {});
    EXPECT_TRUE(made.ok()) << schema.substr(0, 80) << ": " << made.error().message;
  }
}

TEST(GrammarGuards, DeepOrBrokenSchemasAreTheClientsFault) {
  const auto vocabulary = tiny_vocabulary();
  for (const std::string& schema :
       {times(R"({"items":)", 50000) + "{}" + times("}", 50000), times("[", 100000),
        std::string("{"), std::string("7"), std::string(R"({"type":"unheard of"})"),
        std::string(R"({"$ref":"#/nowhere"})")}) {
    const auto grammar = vocabulary->grammar_from_schema(schema);
    ASSERT_FALSE(grammar.ok()) << schema.substr(0, 60);
    EXPECT_EQ(grammar.error().message.find('\n'), std::string::npos);
  }
}

std::string named(const std::string& name, const std::string& schema) {
  return "\"" + name + "\":" + schema;
}

// A chain of definitions that each contain the next one twice, in place.
std::string doubling_schema(int levels) {
  std::string out = "{";
  for (int i = 0; i < levels; ++i) {
    const std::string next = R"({"allOf":[{"$ref":"#/d)" + std::to_string(i + 1) + R"("}]})";
    out += named("d" + std::to_string(i),
                 R"({"properties":{)" + named("a", next) + "," + named("b", next) + "}}") +
           ",";
  }
  return out + named("d" + std::to_string(levels), R"({"type":"string"})") +
         R"(,"allOf":[{"$ref":"#/d0"}]})";
}

TEST(GrammarGuards, SchemasWithoutEndAreTheClientsFault) {
  std::string types = R"({"type":["object","object","object","object"],"properties":{"a":)";
  std::string many = R"({"properties":{)";
  std::string references = R"({"oneOf":[)";
  for (int i = 0; i < 600; ++i) {
    many += named("p" + std::to_string(i), "{}") + ",";
    references += R"({"$ref":"#/d/)" + std::to_string(i) + R"("},)";
  }
  many.back() = '}';
  references.back() = ']';
  const auto vocabulary = tiny_vocabulary();
  for (const std::string& schema : {
           std::string(R"({"allOf":[{"$ref":"#/a"}],"a":{"$ref":"#/a"}})"),
           std::string(R"({"allOf":[{"$ref":"#/a"}],"a":{"$ref":"#/b"},"b":{"$ref":"#/a"}})"),
           std::string(
               R"({"allOf":[{"$ref":"#/x"}],"x":{"properties":{"p":{"allOf":[{"$ref":"#/x"}]}}}})"),
           doubling_schema(40),
           times(types, 40) + "{}" + times("}}", 40),
           many + "}",
           references + "}",
           R"({"type":"string","description":")" + std::string(600000, 'a') + "\"}",
           R"({"properties":{")" + std::string(2000, 'a') + R"(":{}}})",
       }) {
    const auto grammar = vocabulary->grammar_from_schema(schema);
    ASSERT_FALSE(grammar.ok()) << schema.substr(0, 80);
    EXPECT_LT(grammar.error().message.size(), 300U);
    ChatInput input;
    input.messages_json = R"([{"role":"user","content":"hi"}])";
    input.tools_json =
        R"([{"type":"function","function":{"name":"f","parameters":)" + schema + "}}]";
    EXPECT_FALSE(vocabulary->apply_template(input).ok()) << schema.substr(0, 80);
  }
}

std::string with_pattern(const std::string& pattern) {
  std::string escaped;
  for (const char c : pattern)
    escaped += c == '\\' || c == '"' ? std::string{'\\', c} : std::string{c};
  return R"({"type":"string","pattern":")" + escaped + "\"}";
}

TEST(GrammarGuards, PatternsThatTheLibraryWouldIgnoreAreFaults) {
  const auto vocabulary = tiny_vocabulary();
  for (const char* pattern : {"^abc$", "^[a-z]+$", "^(?:ab)?$", "^a{2,}|b$", R"(^a\.b\\$)",
                              "^[^a]$", R"(^\u0041\x41$)", "^[a^b$c{]$", "^$"}) {
    const auto grammar = vocabulary->grammar_from_schema(with_pattern(pattern));
    EXPECT_TRUE(grammar.ok()) << pattern << ": " << grammar.error().message;
  }
  for (const char* pattern :
       {"abc", "^abc", "abc$", "^(?=x)y$", R"(^\d$)", R"(^[\w]$)", "^a^b$", "^a$b$", "^a{x}$",
        "^a{$", "^a}$", "^(a$", "^a)$", "^[a$", R"(^a\$)", R"(^\x4$)", R"(^\u12$)", "$", "^"}) {
    const auto grammar = vocabulary->grammar_from_schema(with_pattern(pattern));
    ASSERT_FALSE(grammar.ok()) << pattern;
    EXPECT_TRUE(grammar.error().message.starts_with("json_schema: pattern")) << pattern;
  }
}

TEST(GrammarGuards, ToolsMayAskMoreThanTheGrammarCanSay) {
  ChatInput input;
  input.messages_json = R"([{"role":"user","content":"hi"}])";
  for (const std::string& schema :
       {with_pattern(R"(^\d{4}$)"), std::string(R"({"type":"string","maxLength":65536})"),
        std::string(R"({"type":"array","minItems":5000,"items":{"type":"string"}})")}) {
    input.tools_json = R"([{"type":"function","function":{"name":"f","parameters":)"
                       R"({"type":"object","properties":{"a":)" +
                       schema + "}}}}]";
    const auto prompt = tiny_vocabulary()->apply_template(input);
    ASSERT_TRUE(prompt.ok()) << schema << prompt.error().message;
    EXPECT_TRUE(tiny_vocabulary()->make_sampler(prompt->constraints, {}).ok()) << schema;
  }
}

TEST(GrammarGuards, LongChainsOfReferencesDoNotOverflowTheStack) {
  std::string chain = R"({"$ref":"#/d0")";
  for (int i = 0; i < 500; ++i) {
    chain += "," + named("d" + std::to_string(i),
                         R"({"properties":{"n":{"$ref":"#/d)" + std::to_string(i + 1) + R"("}}})");
  }
  chain += "," + named("d500", R"({"type":"integer"})") + "}";
  EXPECT_TRUE(tiny_vocabulary()->grammar_from_schema(chain).ok());
  EXPECT_TRUE(tiny_vocabulary()->grammar_from_schema(doubling_schema(5)).ok());
}

TEST(GrammarGuards, AReplyThatNestsWithoutEndIsContent) {
  ChatInput input;
  input.messages_json = R"([{"role":"user","content":"hi"}])";
  input.tools_json = R"([{"type":"function","function":{"name":"f","parameters":{}}}])";
  const auto prompt = tiny_vocabulary()->apply_template(input);
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  const std::string reply = "<tool_call>\n{\"name\": \"f\", \"arguments\": " + times("[", 200000);
  EXPECT_EQ(prompt->parser->parse(reply, true).content, reply);
  EXPECT_EQ(prompt->parser->parse(reply, false).content, reply);
}

TEST(GrammarGuards, DeepMessagesAreTheClientsFault) {
  ChatInput input;
  input.messages_json =
      R"([{"role":"user","content":"hi","x":)" + times("[", 100000) + times("]", 100000) + "}]";
  EXPECT_FALSE(tiny_vocabulary()->apply_template(input).ok());
  input.messages_json = R"([{"role":"user","content":"[[[[ \" {{{{"}])";
  EXPECT_TRUE(tiny_vocabulary()->apply_template(input).ok()) << "brackets in text do not nest";
  input.template_kwargs["deep"] = times("[", 1000) + times("]", 1000);
  EXPECT_FALSE(tiny_vocabulary()->apply_template(input).ok());
}

TEST(GrammarGuards, AnEndTokenInABegunReplyIsAFault) {
  SamplingParams params;
  params.grammar = "root ::= \"<|im_start|>assistant\\n\" .*";
  params.grammar_origin = GrammarOrigin::json_schema;
  params.generation_prompt = "<|im_start|>assistant\n";
  EXPECT_TRUE(tiny_vocabulary()->make_sampler(params, {}).ok());
  params.generation_prompt += "text<|im_end|>";
  EXPECT_FALSE(tiny_vocabulary()->make_sampler(params, {}).ok());
}

TEST(GrammarGuards, TriggersThatTheLibraryDoesNotSurviveAreFaults) {
  SamplingParams params;
  params.grammar = "root ::= \"x\"";
  params.grammar_lazy = true;
  const auto with = [&](GrammarOrigin origin, GrammarTrigger::Kind kind, const std::string& value) {
    params.grammar_origin = origin;
    params.grammar_triggers = {{kind, value, TokenId{-1}}};
    return tiny_vocabulary()->make_sampler(params, {}).ok();
  };
  using Kind = GrammarTrigger::Kind;
  EXPECT_FALSE(with(GrammarOrigin::client, Kind::pattern_full, "[\\s\\S]*?(x)"));
  EXPECT_FALSE(with(GrammarOrigin::client, Kind::pattern, "a?a?a?a?aaaa"));
  EXPECT_TRUE(with(GrammarOrigin::tool_calls, Kind::pattern, "<start>\\s+to"));
  EXPECT_FALSE(with(GrammarOrigin::tool_calls, Kind::pattern, "(")) << "no regular expression";
  EXPECT_TRUE(with(GrammarOrigin::client, Kind::word, "a*b("));
  EXPECT_FALSE(with(GrammarOrigin::client, Kind::word, std::string(5000, 'a')));
  EXPECT_FALSE(with(GrammarOrigin::client, Kind::token, "")) << "token -1";
  params.grammar_triggers.clear();
  EXPECT_FALSE(tiny_vocabulary()->make_sampler(params, {}).ok()) << "nothing starts it";
}

// --- sampling parameters ------------------------------------------------------------------------

TEST(SamplerGuards, ValuesThatTheLibraryDoesNotSurviveAreFaults) {
  const auto vocabulary = tiny_vocabulary();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto refused = [&](const std::string& field, auto set) {
    SamplingParams params;
    set(params);
    const auto made = vocabulary->make_sampler(params, {});
    ASSERT_FALSE(made.ok()) << field;
    EXPECT_TRUE(made.error().message.starts_with(field + ": ")) << made.error().message;
  };
  refused("temperature", [&](SamplingParams& p) { p.temperature = nan; });
  refused("top_p", [&](SamplingParams& p) { p.top_p = nan; });
  refused("dry_base", [&](SamplingParams& p) { p.dry_base = infinity; });
  refused("repeat_penalty", [&](SamplingParams& p) { p.repeat_penalty = 0.0F; });
  refused("repeat_penalty", [&](SamplingParams& p) { p.repeat_penalty = 1e-45F; });
  refused("mirostat", [&](SamplingParams& p) { p.mirostat = 3; });
  refused("mirostat", [&](SamplingParams& p) { p.mirostat = -1; });
  refused("logit_bias", [&](SamplingParams& p) { p.logit_bias = {{TokenId{-1}, 1.0F}}; });
  refused("logit_bias", [&](SamplingParams& p) { p.logit_bias = {{TokenId{1280}, 1.0F}}; });
  refused("logit_bias", [&](SamplingParams& p) { p.logit_bias = {{TokenId{5}, nan}}; });
  refused("logit_bias", [&](SamplingParams& p) { p.logit_bias = {{TokenId{5}, infinity}}; });
  refused("samplers", [&](SamplingParams& p) { p.samplers = {SamplerKind::infill}; });
  refused("samplers", [&](SamplingParams& p) {
    p.samplers = {SamplerKind::top_k, SamplerKind::infill};
    p.top_k = 0;
  });
  refused("samplers", [&](SamplingParams& p) {
    p.samplers = {SamplerKind::top_k, SamplerKind::infill};
    p.grammar = "root ::= \"a\"";
  });
  refused("samplers", [&](SamplingParams& p) { p.samplers.assign(1000, SamplerKind::top_k); });
  refused("dry_sequence_breakers",
          [&](SamplingParams& p) { p.dry_sequence_breakers.assign(1000, "a"); });
  refused("dry_sequence_breakers",
          [&](SamplingParams& p) { p.dry_sequence_breakers = {std::string(1000, 'a')}; });
}

TEST(SamplerGuards, OddButHarmlessValuesWork) {
  SamplingParams params;
  params.min_keep = -5;
  params.top_k = std::numeric_limits<std::int32_t>::min();
  params.repeat_last_n = std::numeric_limits<std::int32_t>::max();
  params.repeat_penalty = 1.1F;
  params.dry_penalty_last_n = std::numeric_limits<std::int32_t>::max();
  params.dry_multiplier = 1.0F;
  params.dry_allowed_length = -3;
  params.dry_sequence_breakers = {"", std::string("\0x", 2), "\n"};
  params.samplers.clear();
  EXPECT_TRUE(tiny_vocabulary()->make_sampler(params, {}).ok());
  params.samplers = {SamplerKind::penalties, SamplerKind::penalties, SamplerKind::dry};
  EXPECT_TRUE(tiny_vocabulary()->make_sampler(params, {}).ok());
}

// --- text ---------------------------------------------------------------------------------------

TEST(TextGuards, AnyBytesCanBeTokenized) {
  const auto vocabulary = tiny_vocabulary();
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    const std::int64_t length = random.between(0, 200);
    for (std::int64_t i = 0; i < length; ++i) bytes += static_cast<char>(random.between(0, 255));
    for (const TokenId token : vocabulary->tokenize(bytes, true, true)) {
      ASSERT_GE(raw(token), 0);
      ASSERT_LT(raw(token), vocabulary->size());
    }
  }
}

// A vocabulary whose pre-tokenizer is a std::regex, as many models have it.
std::string with_pre_tokenizer(const std::string& pre) {
  const std::string path = ModelFolder::instance().file(pre + ".gguf");
  gguf_context* from =
      gguf_init_from_file(tiny_model_path().c_str(), {.no_alloc = true, .ctx = nullptr});
  gguf_context* to = gguf_init_empty();
  gguf_set_kv(to, from);
  gguf_set_val_str(to, "tokenizer.ggml.pre", pre.c_str());
  EXPECT_TRUE(gguf_write_to_file(to, path.c_str(), true));
  gguf_free(to);
  gguf_free(from);
  return path;
}

TEST(TextGuards, ALongRunWithoutSpacesDoesNotOverflowTheStack) {
  tiny_vocabulary();
  for (const std::string pre : {"gpt-4o", "tekken", "deepseek-llm"}) {
    const auto loaded = load_vocabulary(with_pre_tokenizer(pre));
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const Vocabulary& vocabulary = **loaded;
    for (const std::string unit : {"a", " ", "!", "7", "é"}) {
      const std::string text = times(unit, 150000);
      EXPECT_EQ(vocabulary.detokenize(vocabulary.tokenize(text, false, true)), text)
          << pre << " '" << unit << "'";
    }
  }
}

TEST(TextGuards, ARunLongerThanTheDeepestStackIsCutBetweenCharacters) {
  const auto loaded = load_vocabulary(with_pre_tokenizer("gpt-4o"));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const std::string text = times("é", 700000);
  EXPECT_EQ((*loaded)->detokenize((*loaded)->tokenize(text, true, true)), text);
}

// --- ranges -------------------------------------------------------------------------------------

TEST(RangeGuards, DamagedBytesNeverReachTheLibrary) {
  const auto model = load_test_model(tiny_model_path());
  const auto built = model->build(geometry(256, 2), one_thread());
  ASSERT_TRUE(built.ok()) << built.error().message;
  Engine& engine = **built;
  const std::vector<TokenId> text(12, TokenId{80});
  const RowGroup group{Seat(0), Tokens(0), text, nullptr, nullptr};
  GroupResult result;
  ASSERT_EQ(engine.step({&group, 1}, {&result, 1}), StepOutcome::done);
  ByteBuffer good;
  ASSERT_TRUE(engine.export_range(Seat(0), Tokens(0), Tokens(12), good).ok());
  Random random(6);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    ByteBuffer bad = good;
    // Mostly where the structure is: headers, positions, layer heads.
    const std::int64_t end = round % 3 == 0 ? static_cast<std::int64_t>(bad.size()) - 1 : 300;
    for (std::int64_t n = random.between(1, 4); n > 0; --n) {
      bad[static_cast<std::size_t>(random.between(0, end))] ^=
          static_cast<std::byte>(1U << random.between(0, 7));
    }
    if (random.chance(20)) bad.resize(static_cast<std::size_t>(random.between(0, end)));
    const auto in = engine.import_range(Seat(1), bad);
    if (in.ok()) {
      // Only numbers of K and V were hit: whole as far as anyone can tell.
      EXPECT_EQ(engine.position(Seat(1)), Tokens(12));
    } else {
      EXPECT_EQ(in.error(), MoveFault::foreign);
      EXPECT_EQ(engine.position(Seat(1)), Tokens(0));
      ++refused;
    }
    engine.clear(Seat(1));
    ASSERT_EQ(engine.position(Seat(0)), Tokens(12));
  }
  EXPECT_GT(refused, 1000);
  EXPECT_TRUE(engine.import_range(Seat(1), good).ok());
}

}  // namespace
}  // namespace fermata::engine::llama
