// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// What tokenizing and rendering cost, without a network. Prints one JSON object per line.
//   bench_tokenize load FOLDER
//   bench_tokenize encode FOLDER MILLISECONDS INPUT.json…
//   bench_tokenize render FOLDER MILLISECONDS BODY.json
//   bench_tokenize turns FOLDER ROUNDS CONVERSATION.json OTHER.json

#include "core/result.h"
#include "prompt/preprocessor.h"
#include "prompt/tokenizer/tokenizer.h"
#include "wire/json_object.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::prompt {
namespace {

struct Clocks {
  double cpu_s;
  double wall_s;
};

double seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

Clocks clocks() {
  return {.cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID), .wall_s = seconds(CLOCK_MONOTONIC)};
}

[[noreturn]] void give_up(std::string_view message) {
  fmt::print(stderr, "bench_tokenize: {}\n", message);
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error().message());
  return *std::move(result);
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) give_up(fmt::format("cannot read {}", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

void load(const char* folder) {
  const Clocks before = clocks();
  const auto tokenizer = need(Tokenizer::load(folder));
  const Clocks after = clocks();
  fmt::print("{{\"cpu_s\": {}, \"wall_s\": {}}}\n", after.cpu_s - before.cpu_s,
             after.wall_s - before.wall_s);
}

std::size_t encode_all(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::size_t tokens = 0;
  for (const std::string& text : texts) {
    tokens += need(tokenizer.encode(text, {.add_special = AddSpecial::No})).size();
  }
  return tokens;
}

void encode(const char* folder, double milliseconds, std::span<char*> inputs) {
  const auto tokenizer = need(Tokenizer::load(folder));
  for (const char* input : inputs) {
    const auto texts = nlohmann::json::parse(read_file(input)).get<std::vector<std::string>>();
    const std::size_t tokens = encode_all(*tokenizer, texts);
    const Clocks before = clocks();
    Clocks after = before;
    int passes = 0;
    for (; (after.cpu_s - before.cpu_s) * 1e3 < milliseconds; ++passes) {
      if (encode_all(*tokenizer, texts) != tokens) give_up("the same text gave other tokens");
      after = clocks();
    }
    fmt::print("{{\"tokens\": {}, \"passes\": {}, \"cpu_s\": {}, \"wall_s\": {}}}\n", tokens,
               passes, after.cpu_s - before.cpu_s, after.wall_s - before.wall_s);
  }
}

// A request's body to the prompt's text: reading the messages, and the template.
void render(const char* folder, double milliseconds, const char* input) {
  const auto preprocessor = need(Preprocessor::load({.folder = folder}));
  const std::string text = read_file(input);
  const wire::JsonObject body = need(wire::JsonObject::parse(text));
  const Occasion occasion{.now = std::chrono::system_clock::now()};
  const std::size_t size = need(preprocessor->rendered(body, occasion)).size();
  const Clocks before = clocks();
  Clocks after = before;
  std::uint64_t times = 0;
  while ((after.cpu_s - before.cpu_s) * 1e3 < milliseconds) {
    if (need(preprocessor->rendered(body, occasion)).size() != size) give_up("rendered otherwise");
    ++times;
    after = clocks();
  }
  fmt::print("{{\"bytes\": {}, \"cpu_us\": {}}}\n", size,
             (after.cpu_s - before.cpu_s) * 1e6 / static_cast<double>(times));
}

// The bodies of a conversation asked turn by turn, each with all that was said before.
std::vector<std::string> turns_of(const char* input) {
  auto conversation = nlohmann::json::parse(read_file(input));
  const nlohmann::json messages = conversation.at("messages");
  auto& said = conversation["messages"] = nlohmann::json::array();
  std::vector<std::string> bodies;
  for (const auto& message : messages) {
    said.push_back(message);
    if (message.at("role") == "user") bodies.push_back(conversation.dump());
  }
  return bodies;
}

std::size_t ask_all(const Preprocessor& preprocessor, const std::vector<std::string>& bodies) {
  const Occasion occasion{.now = std::chrono::system_clock::now()};
  std::size_t tokens = 0;
  for (const std::string& text : bodies) {
    const auto body = need(wire::JsonObject::parse(text));
    tokens += need(preprocessor.chat(body, occasion)).prompts.at(0).size();
  }
  return tokens;
}

// The same up to the text of the prompts.
double render_all_us(const char* folder, int rounds, const std::vector<std::string>& bodies) {
  const auto preprocessor = need(Preprocessor::load({.folder = folder}));
  const Occasion occasion{.now = std::chrono::system_clock::now()};
  double best = 0;
  for (int round = 0; round <= rounds; ++round) {  // the first to warm up
    const Clocks before = clocks();
    for (const std::string& text : bodies) {
      need(preprocessor->rendered(need(wire::JsonObject::parse(text)), occasion));
    }
    const double cpu_us = (clocks().cpu_s - before.cpu_s) * 1e6;
    if (round <= 1 || cpu_us < best) best = cpu_us;
  }
  return best;
}

struct Turns {
  std::size_t tokens;
  double cpu_us;
};

// The best of several times; each begins with a preprocessor that has served another conversation.
Turns ask(const char* folder, std::size_t cache_bytes, int rounds,
          const std::vector<std::string>& bodies, const std::vector<std::string>& others) {
  Turns best{};
  for (int round = 0; round < rounds; ++round) {
    const auto preprocessor =
        need(Preprocessor::load({.folder = folder, .cache_bytes = cache_bytes}));
    ask_all(*preprocessor, others);
    const Clocks before = clocks();
    const std::size_t tokens = ask_all(*preprocessor, bodies);
    const double cpu_us = (clocks().cpu_s - before.cpu_s) * 1e6;
    if (round == 0 || cpu_us < best.cpu_us) best = {.tokens = tokens, .cpu_us = cpu_us};
  }
  return best;
}

void turns(const char* folder, int rounds, const char* conversation, const char* other) {
  const auto bodies = turns_of(conversation);
  const auto others = turns_of(other);
  const Turns plain = ask(folder, 0, rounds, bodies, others);
  const Turns cached = ask(folder, Sources{}.cache_bytes, rounds, bodies, others);
  if (plain.tokens != cached.tokens) give_up("the cache changes the tokens");
  fmt::print(
      "{{\"turns\": {}, \"tokens\": {}, \"plain_us\": {}, \"cached_us\": {}, \"render_us\": {}}}\n",
      bodies.size(), plain.tokens, plain.cpu_us, cached.cpu_us,
      render_all_us(folder, rounds, bodies));
}

int run(std::span<char*> arguments) {
  const std::string_view command = arguments.size() > 1 ? arguments[1] : "";
  if (command == "load" && arguments.size() == 3) {
    load(arguments[2]);
  } else if (command == "encode" && arguments.size() > 4) {
    encode(arguments[2], std::atof(arguments[3]), arguments.subspan(4));
  } else if (command == "render" && arguments.size() == 5) {
    render(arguments[2], std::atof(arguments[3]), arguments[4]);
  } else if (command == "turns" && arguments.size() == 6) {
    turns(arguments[2], std::atoi(arguments[3]), arguments[4], arguments[5]);
  } else {
    fmt::print(stderr, "usage: see the top of bench/tokenize/measure.cc\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace baton::prompt

int main(int argc, char** argv) {
  return baton::prompt::run(std::span(argv, static_cast<std::size_t>(argc)));
}
