// Answers the cases of check.py greedily with libllama and prints how many answers are right, word
// for word, in each category. Also compares our tokenizer and corpus text with libllama's
// tokenizer and chat template; the exit code is 1 when these differ.
//
// The formats of the case and answer files are described in check.py.
#include "llama_handles.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace tiny_model {
namespace {

constexpr char record_end = '\x1e';
constexpr char field_end = '\x1f';
constexpr size_t context_tokens = 8192;
constexpr size_t batch_tokens = 512;
constexpr size_t free_answer_tokens = 900;
constexpr size_t tokens_beyond_answer = 40;  // room to show how an answer goes wrong

struct Options {
  std::string model;
  std::string backends;
  std::string cases;
  std::string answers;
  int threads = 1;
};

struct Case {
  std::string category;
  std::string expected;
  std::string prompt;
  std::vector<std::pair<std::string, std::string>> messages;  // role, content; empty with tools

  bool is_tokenization() const { return category == "tok"; }
  bool is_count() const { return category.starts_with("count"); }
  bool is_open() const { return category.starts_with("?"); }
};

struct Answer {
  std::string text;
  bool stopped_early = false;  // a count that wanted to end before its end, and was kept going
};

struct Score {
  std::string category;
  int total = 0;
  int right = 0;
  int numbers_right = 0;  // counts: right when a stop is ignored
};

std::vector<std::string> split(const std::string& text, char end) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t at = text.find(end); at != std::string::npos; at = text.find(end, start)) {
    parts.push_back(text.substr(start, at - start));
    start = at + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read; `make cases` writes it");
  const std::string content(std::istreambuf_iterator<char>(file), {});
  std::vector<Case> cases;
  for (const std::string& record : split(content, record_end)) {
    const std::vector<std::string> fields = split(record, field_end);
    if (fields.size() < 3 || fields.size() % 2 == 0) {
      throw std::runtime_error(path + ": damaged; `make cases` writes it again");
    }
    Case next{fields[0], fields[1], fields[2], {}};
    for (size_t i = 3; i < fields.size(); i += 2) {
      next.messages.emplace_back(fields[i], fields[i + 1]);
    }
    cases.push_back(std::move(next));
  }
  return cases;
}

// A model with one sequence, sampled greedily.
class Speaker {
 public:
  Speaker(const std::string& model_path, int threads)
      : model_(load_model(model_path, false)), vocab_(llama_model_get_vocab(model_.get())) {
    llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx = context_tokens;
    parameters.n_batch = parameters.n_ubatch = batch_tokens;
    parameters.n_threads = parameters.n_threads_batch = threads;
    parameters.no_perf = true;
    context_.reset(llama_init_from_model(model_.get(), parameters));
    if (context_ == nullptr) throw std::runtime_error("libllama cannot make a context");
  }

  std::vector<llama_token> tokenize(const std::string& text) const {
    std::vector<llama_token> tokens(text.size() + 8);
    const int count = llama_tokenize(vocab_, text.data(), static_cast<int>(text.size()),
                                     tokens.data(), static_cast<int>(tokens.size()), true, true);
    if (count < 0) throw std::runtime_error("libllama cannot tokenize a prompt");
    tokens.resize(count);
    return tokens;
  }

  // The text that libllama's chat template makes of the messages, ready for an answer.
  std::string apply_template(const Case& asked) const {
    std::vector<llama_chat_message> messages;
    for (const auto& [role, content] : asked.messages) {
      messages.push_back({role.c_str(), content.c_str()});
    }
    std::string text(2 * asked.prompt.size() + 4096, '\0');
    const int length = llama_chat_apply_template(llama_model_chat_template(model_.get(), nullptr),
                                                 messages.data(), messages.size(), true,
                                                 text.data(), static_cast<int>(text.size()));
    text.resize(std::max(length, 0));
    return text;
  }

  Answer answer(const Case& asked) {
    start(tokenize(asked.prompt));
    const size_t tokens_max =
        asked.is_open() ? free_answer_tokens : asked.expected.size() + tokens_beyond_answer;
    Answer answer;
    for (size_t i = 0; i < tokens_max; i++) {
      llama_token token = likeliest(LLAMA_TOKEN_NULL);
      if (llama_vocab_is_eog(vocab_, token)) {
        if (!asked.is_count() || answer.text.size() >= asked.expected.size()) break;
        answer.stopped_early = true;
        token = likeliest(token);
      }
      if (asked.is_count() && answer.text.size() > asked.expected.size()) break;
      answer.text += piece(token);
      generated_++;
      decode(&token, 1);
    }
    return answer;
  }

  long generated() const { return generated_; }

 private:
  void decode(llama_token* tokens, size_t count) {
    const auto batch = llama_batch_get_one(tokens, static_cast<int>(count));
    if (llama_decode(context_.get(), batch) != 0) {
      throw std::runtime_error("libllama cannot decode: the conversation is too long");
    }
  }

  void start(std::vector<llama_token> prompt) {
    llama_memory_clear(llama_get_memory(context_.get()), true);
    for (size_t at = 0; at < prompt.size(); at += batch_tokens) {
      decode(prompt.data() + at, std::min(batch_tokens, prompt.size() - at));
    }
  }

  // The most likely next token, leaving one out.
  llama_token likeliest(llama_token left_out) const {
    const float* logits = llama_get_logits_ith(context_.get(), -1);
    llama_token best = left_out == 0 ? 1 : 0;
    for (llama_token token = best + 1; token < llama_vocab_n_tokens(vocab_); token++) {
      if (token != left_out && logits[token] > logits[best]) best = token;
    }
    return best;
  }

  std::string piece(llama_token token) const {
    std::string text(256, '\0');
    const int length =
        llama_token_to_piece(vocab_, token, text.data(), static_cast<int>(text.size()), 0, true);
    text.resize(std::max(length, 0));
    return text;
  }

  Model model_;
  const llama_vocab* vocab_;
  Context context_;
  long generated_ = 0;
};

// Runs the cases and keeps the scores.
class Examination {
 public:
  Examination(Speaker& speaker, std::ostream& answers) : speaker_(speaker), answers_(answers) {}

  void run(const Case& asked) {
    Score& score = score_of(asked.category);
    score.total++;
    if (asked.is_tokenization()) {
      const bool same = token_text(asked.prompt) == asked.expected;
      score.right += same;
      differences_ += !same;
      if (!same) fprintf(stderr, "tokenized differently: %.80s\n", asked.prompt.c_str());
      return;
    }
    if (!asked.messages.empty() && speaker_.apply_template(asked) != asked.prompt) {
      differences_++;
      fprintf(stderr, "template differs: %.80s\n", asked.messages.back().second.c_str());
    }
    const Answer answer = speaker_.answer(asked);
    score.right += answer.text == asked.expected && !answer.stopped_early;
    score.numbers_right += answer.text.starts_with(asked.expected);
    write(asked, answer);
  }

  void print() const {
    for (const Score& score : scores_) {
      if (score.category.starts_with("?")) continue;
      printf("%-28s %4d / %-4d %6.1f %%\n", score.category.c_str(), score.right, score.total,
             100.0 * score.right / score.total);
    }
    printf("numbers right when a stop is ignored:\n");
    for (const Score& score : scores_) {
      if (!score.category.starts_with("count")) continue;
      printf("%-28s %4d / %-4d\n", score.category.c_str(), score.numbers_right, score.total);
    }
  }

  // Of tokenizer and chat template, between this project and libllama.
  int differences() const { return differences_; }

 private:
  Score& score_of(const std::string& category) {
    const auto found = std::ranges::find(scores_, category, &Score::category);
    if (found != scores_.end()) return *found;
    scores_.push_back({category});
    return scores_.back();
  }

  std::string token_text(const std::string& text) const {
    std::string joined;
    for (const llama_token token : speaker_.tokenize(text)) {
      joined += (joined.empty() ? "" : " ") + std::to_string(token);
    }
    return joined;
  }

  void write(const Case& asked, const Answer& answer) {
    const std::string& second =
        asked.category == "?sample" ? asked.messages.back().second : asked.expected;
    if (written_++ > 0) answers_ << record_end;
    answers_ << asked.category << field_end << second << field_end << answer.text
             << (answer.stopped_early ? " (stopped early)" : "");
  }

  Speaker& speaker_;
  std::ostream& answers_;
  std::vector<Score> scores_;
  int differences_ = 0;
  int written_ = 0;
};

int run(const Options& options) {
  silence_progress();
  ggml_backend_load_all_from_path(options.backends.c_str());
  const std::vector<Case> cases = read_cases(options.cases);
  std::ofstream answers(options.answers, std::ios::binary);
  if (!answers) throw std::runtime_error(options.answers + ": cannot be written");
  Speaker speaker(options.model, options.threads);
  Examination examination(speaker, answers);
  const auto start = std::chrono::steady_clock::now();
  for (const Case& asked : cases) examination.run(asked);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  examination.print();
  printf("%ld tokens generated, %.0f tokens/s with prompts, %d thread(s)\n", speaker.generated(),
         speaker.generated() / elapsed.count(), options.threads);
  printf("differences from libllama in tokens or template: %d\n", examination.differences());
  return examination.differences() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tiny_model

int main(int argc, char** argv) {
  tiny_model::Options options;
  CLI::App app("Answers the cases of check.py with libllama and prints the scores.");
  app.add_option("model", options.model, "GGUF file")->required();
  app.add_option("--backends", options.backends, "folder of ggml's backends")->required();
  app.add_option("--cases", options.cases, "case file to read")->required();
  app.add_option("--answers", options.answers, "answer file to write")->required();
  app.add_option("--threads", options.threads, "threads of libllama (default 1)");
  CLI11_PARSE(app, argc, argv);
  try {
    return tiny_model::run(options);
  } catch (const std::exception& error) {
    fprintf(stderr, "check: %s\n", error.what());
    return 2;
  }
}
