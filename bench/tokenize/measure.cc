// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// What tokenizing and rendering cost, without a network. Prints one JSON object per line.
//   bench_tokenize load FOLDER
//   bench_tokenize encode FOLDER MILLISECONDS INPUT.json…
//   bench_tokenize render FOLDER MILLISECONDS BODY.json
//   bench_tokenize turns FOLDER ROUNDS CONVERSATION.json…

#include "libs/tokenizer/segment_cache.h"
#include "libs/tokenizer/tokenizer.h"
#include "prompt/preprocessor.h"
#include "wire/json_object.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <expected>
#include <fstream>
#include <iterator>
#include <optional>
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

template <class T, class Error>
T need(std::expected<T, Error> result) {
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
  const auto tokenizer = need(tokenizer::Tokenizer::load(folder));
  const Clocks after = clocks();
  fmt::print("{{\"cpu_s\": {}, \"wall_s\": {}}}\n", after.cpu_s - before.cpu_s,
             after.wall_s - before.wall_s);
}

std::size_t encode_all(const tokenizer::Tokenizer& tokenizer,
                       const std::vector<std::string>& texts) {
  std::size_t tokens = 0;
  for (const std::string& text : texts) {
    tokens += need(tokenizer.encode(text, {.add_special = tokenizer::AddSpecial::No})).size();
  }
  return tokens;
}

void encode(const char* folder, double milliseconds, std::span<char*> inputs) {
  const auto tokenizer = need(tokenizer::Tokenizer::load(folder));
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
  const RenderContext context{.now = std::chrono::system_clock::now()};
  const std::size_t size = need(preprocessor->rendered(body, context)).size();
  const Clocks before = clocks();
  Clocks after = before;
  std::uint64_t times = 0;
  while ((after.cpu_s - before.cpu_s) * 1e3 < milliseconds) {
    if (need(preprocessor->rendered(body, context)).size() != size) give_up("rendered otherwise");
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

// What the turns of conversations cost, in all.
struct Turns {
  std::size_t tokens = 0;
  std::uint64_t hash = 0;  // of all of them, in order
  double render_us = 0;    // from a body that has just come to the text of the prompt
  double encode_us = 0;    // from there to its tokens

  double sum_us() const { return render_us + encode_us; }
};

double cpu_us() { return seconds(CLOCK_PROCESS_CPUTIME_ID) * 1e6; }

Turns ask_all(const Preprocessor& preprocessor, tokenizer::SegmentCache* cache,
              const std::vector<std::string>& bodies) {
  const RenderContext context{.now = std::chrono::system_clock::now()};
  Turns turns;
  for (const std::string& body : bodies) {
    const std::string received = body;
    const double start = cpu_us();
    const std::string text =
        need(preprocessor.rendered(need(wire::JsonObject::parse(received)), context));
    const double rendered = cpu_us();
    const tokenizer::TokenIds ids = need(preprocessor.tokenizer().encode(
        text, {.add_special = tokenizer::AddSpecial::No, .cache = cache}));
    turns.render_us += rendered - start;
    turns.encode_us += cpu_us() - rendered;
    turns.tokens += ids.size();
    for (const tokenizer::TokenId id : ids)
      turns.hash = (turns.hash ^ id) * 0x9E37'79B9'7F4A'7C15ULL;
  }
  return turns;
}

// The first questions of all conversations, then the second ones and so on, as a gateway gets them.
std::vector<std::string> side_by_side(std::span<char*> inputs) {
  std::vector<std::vector<std::string>> conversations;
  for (const char* input : inputs) conversations.push_back(turns_of(input));
  std::vector<std::string> bodies;
  for (std::size_t turn = 0; turn < conversations.front().size(); ++turn) {
    for (const auto& conversation : conversations) bodies.push_back(conversation.at(turn));
  }
  return bodies;
}

// What a preprocessor takes for them that was just loaded, or `best` where that was better.
Turns ask(const char* folder, std::size_t cache_bytes, const std::vector<std::string>& bodies,
          const Turns& best) {
  const auto preprocessor = need(Preprocessor::load({.folder = folder}));
  std::optional<tokenizer::SegmentCache> cache;
  if (cache_bytes > 0) cache.emplace(cache_bytes);
  const Turns now = ask_all(*preprocessor, cache ? &*cache : nullptr, bodies);
  return best.tokens == 0 || now.sum_us() < best.sum_us() ? now : best;
}

void turns(const char* folder, int rounds, std::span<char*> inputs) {
  const std::vector<std::string> bodies = side_by_side(inputs);
  Turns plain;
  Turns cached;
  for (int round = 0; round < rounds; ++round) {  // in turn: the machine has better and worse times
    plain = ask(folder, 0, bodies, plain);
    cached = ask(folder, Sources{}.cache_bytes, bodies, cached);
  }
  if (plain.hash != cached.hash) give_up("the cache changes the tokens");
  fmt::print(
      "{{\"tokens\": {}, \"plain_us\": {}, \"cached_us\": {}, \"plain_encode_us\": {}, "
      "\"cached_encode_us\": {}}}\n",
      plain.tokens, plain.sum_us(), cached.sum_us(), plain.encode_us, cached.encode_us);
}

int run(std::span<char*> arguments) {
  const std::string_view command = arguments.size() > 1 ? arguments[1] : "";
  if (command == "load" && arguments.size() == 3) {
    load(arguments[2]);
  } else if (command == "encode" && arguments.size() > 4) {
    encode(arguments[2], std::atof(arguments[3]), arguments.subspan(4));
  } else if (command == "render" && arguments.size() == 5) {
    render(arguments[2], std::atof(arguments[3]), arguments[4]);
  } else if (command == "turns" && arguments.size() > 4) {
    turns(arguments[2], std::atoi(arguments[3]), arguments.subspan(4));
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
