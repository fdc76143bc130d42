// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How many blocks one core takes from an engine's messages into the index: reading, hashing, storing
// and removing. The messages are those of an engine that computes prompts of a few thousand tokens
// and generates a few hundred, with a cache that is full, so that each block stored evicts one.
#include "kvcache/events/applier.h"
#include "kvcache/events/event_decoder.h"
#include "kvcache/index/index.h"
#include "support/msgpack_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace baton;
using test::MsgpackEncoder;

constexpr std::uint32_t kBlockSize = 16;
constexpr std::size_t kCachedBlocks = 100'000;
constexpr std::size_t kBlocks = 1'500'000;
constexpr int kRounds = 5;

enum class Encoding { Map, Array };

// Role. The messages of one engine.
// Lifetime. Of one measurement.
class Engine {
 public:
  explicit Engine(Encoding encoding) : encoding_(encoding) {}

  // A step of its scheduler: prompt blocks of some requests, and the evictions that make room.
  std::string step() {
    MsgpackEncoder events;
    std::size_t count = 0;
    for (int i = 0; i < 4; ++i) {
      // Long prompts are computed in pieces; generation fills a block now and then.
      const std::size_t blocks = random_() % 3 == 0 ? 1 : 32 + random_() % 97;
      store(events, blocks);
      count += 1;
      for (std::size_t block = 0; block < blocks && cached_ > kCachedBlocks; ++block) {
        remove(events, evict());
        ++count;
      }
    }
    MsgpackEncoder batch;
    batch.array(3).number(1.7e9).array(count).raw(events.encoded()).unsigned_integer(0);
    return batch.encoded();
  }
  std::size_t operations() const { return operations_; }

 private:
  void store(MsgpackEncoder& events, std::size_t blocks) {
    operations_ += blocks;
    const bool map = encoding_ == Encoding::Map;
    const auto name = [&](std::string_view text) {
      if (map) events.text(text);
    };
    map ? events.map(11).text("type") : events.array(12);
    events.text("BlockStored");
    name("block_hashes");
    events.array(blocks);
    auto& request = requests_.emplace_back();
    for (std::size_t i = 0; i < blocks; ++i) {
      request.push_back(random_());
      events.unsigned_integer(request.back());
    }
    cached_ += blocks;
    name("parent_block_hash");
    events.nil();
    name("token_ids");
    events.array(blocks * kBlockSize);
    for (std::size_t i = 0; i < blocks * kBlockSize; ++i) events.unsigned_integer(token());
    name("block_size");
    events.unsigned_integer(kBlockSize);
    name("lora_id");
    events.nil();
    name("medium");
    events.text("GPU");
    name("lora_name");
    events.nil();
    name("extra_keys");
    events.array(blocks);
    for (std::size_t i = 0; i < blocks; ++i) events.nil();
    name("group_idx");
    events.unsigned_integer(0);
    name("kv_cache_spec_kind");
    events.text("full_attention");
    if (!map) events.nil();
  }

  // Of the oldest request the last block, as vLLM does it.
  std::uint64_t evict() {
    auto& oldest = requests_.front();
    const std::uint64_t hash = oldest.back();
    oldest.pop_back();
    if (oldest.empty()) requests_.pop_front();
    --cached_;
    return hash;
  }

  // One hash per event, as vLLM does it.
  void remove(MsgpackEncoder& events, std::uint64_t hash) {
    ++operations_;
    if (encoding_ == Encoding::Map) {
      events.map(4).text("type").text("BlockRemoved").text("block_hashes").array(1);
      events.unsigned_integer(hash)
          .text("medium")
          .text("GPU")
          .text("group_idx")
          .unsigned_integer(0);
    } else {
      events.array(4).text("BlockRemoved").array(1).unsigned_integer(hash).text("GPU");
      events.unsigned_integer(0);
    }
  }

  // Of a vocabulary of 128,000: frequent words have small numbers.
  std::uint64_t token() { return random_() % 128'000 >> random_() % 8; }

  Encoding encoding_;
  std::mt19937_64 random_{42};
  std::deque<std::vector<std::uint64_t>> requests_;  // their blocks
  std::size_t cached_ = 0;
  std::size_t operations_ = 0;
};

struct Measured {
  double per_second = 0;
  double read_per_second = 0;  // only read, neither hashed nor applied
  double bytes_per_operation = 0;
};

// What this thread has had of a core: others may be running on it.
double seconds_of_core() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::exit(1);
}

// How long reading alone takes.
double read_all(const std::vector<std::string>& messages) {
  kvcache::Event event;
  const double begin = seconds_of_core();
  for (const std::string& message : messages) {
    wire::MsgpackReader reader(std::as_bytes(std::span(message)));
    const auto opening = kvcache::open_batch(reader);
    require(opening.has_value(), "a batch is read");
    for (std::uint32_t left = opening->events; left > 0; left -= event.events) {
      require(kvcache::decode_events(reader, event, left) == kvcache::Decoded::Event,
              "an event is read");
    }
  }
  return seconds_of_core() - begin;
}

Measured measure(Encoding encoding) {
  Engine engine(encoding);
  std::vector<std::string> messages;
  std::size_t bytes = 0;
  while (engine.operations() < kBlocks) {
    messages.push_back(engine.step());
    bytes += messages.back().size();
  }
  Measured best{.bytes_per_operation =
                    static_cast<double>(bytes) / static_cast<double>(engine.operations())};
  for (int round = 0; round < kRounds; ++round) {
    kvcache::Index index({});
    const kvcache::Slot slot = index.join({.worker = {1}, .rank = 0});
    kvcache::Applier applier(index, slot, std::nullopt);
    const double begin = seconds_of_core();
    for (const std::string& message : messages)
      require(applier.apply_batch(std::as_bytes(std::span(message))).has_value(),
              "a batch is read");
    const double took = seconds_of_core() - begin;
    const auto& tally = applier.tally();
    require(tally.stored + tally.removed == engine.operations(), "every block was applied");
    const auto operations = static_cast<double>(engine.operations());
    best.per_second = std::max(best.per_second, operations / took);
    best.read_per_second = std::max(best.read_per_second, operations / read_all(messages));
  }
  return best;
}

}  // namespace

int main() {
  for (const auto& [name, encoding] :
       {std::pair{"map", Encoding::Map}, std::pair{"array", Encoding::Array}}) {
    const Measured measured = measure(encoding);
    fmt::print(
        "{{\"encoding\": \"{}\", \"block_operations_per_second\": {:.0f}, "
        "\"blocks_read_per_second\": {:.0f}, "
        "\"bytes_per_operation\": {:.1f}, \"block_size\": {}}}\n",
        name, measured.per_second, measured.read_per_second, measured.bytes_per_operation,
        kBlockSize);
  }
}
