// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// What the index of blocks costs. Prints one JSON object per line, and how far it is to stderr.
//   bench_index trace WORKERS CACHED_BLOCKS [TRACE.jsonl]   events and lookups of a fleet
//   bench_index lookups ROUNDS MILLIONS                     prompts against many holders, up to so
//                                                           many blocks times holders
//   bench_index memory                                      bytes for each block and holder
//   bench_index churn MILLIONS                              blocks come and go

#include "index/naive.h"
#include "index/workload.h"
#include "kvcache/index/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

namespace baton::kvcache {
namespace {

using Clock = std::chrono::steady_clock;

// Both clocks of one thread: on a busy machine the processor's tells more.
class Stopwatch {
 public:
  double wall() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  double cpu() const { return cpu_now() - cpu_begin_; }

 private:
  static double cpu_now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  Clock::time_point begin_ = Clock::now();
  double cpu_begin_ = cpu_now();
};

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void say_progress(std::string_view what, std::size_t done, std::size_t all) {
  constexpr std::size_t kWidth = 30;
  const std::size_t full = kWidth * done / std::max<std::size_t>(all, 1);
  fmt::print(stderr, "\r    {:22} [{:#<{}}{:.<{}}] {:3} %{}", what, "", full, "", kWidth - full,
             100 * done / std::max<std::size_t>(all, 1), done >= all ? "\n" : "");
}

struct Latencies {
  std::vector<std::uint32_t> ns;
  double at(double part) {
    if (ns.empty()) return 0;
    const auto place = static_cast<std::size_t>(part * static_cast<double>(ns.size() - 1));
    std::ranges::nth_element(ns, ns.begin() + static_cast<std::ptrdiff_t>(place));
    return ns[place] / 1000.0;
  }
};

// Baton's, with the face of the naive one.
class Indexed {
 public:
  explicit Indexed(std::size_t workers) : index_({}) {
    for (std::uint32_t i = 0; i < workers; ++i) {
      slots_.push_back(index_.join({.worker = {i + 1}, .rank = 0}));
    }
  }
  void store(std::uint32_t worker, std::optional<EngineHash> parent,
             std::span<const NewBlock> blocks) {
    index_.store(slots_[worker], parent, blocks, Tier::Device);
  }
  void remove(std::uint32_t worker, std::span<const EngineHash> names) {
    index_.remove(slots_[worker], names, Tier::Device);
  }
  void match(std::span<const SequenceHash> prompt, std::vector<Match>& matches) const {
    index_.match(prompt, matches);
  }
  const Index& index() const { return index_; }

 private:
  Index index_;
  std::vector<Slot> slots_;
};

struct Timed {
  double seconds = 0;
  double cpu_seconds = 0;
  std::size_t blocks = 0;
  std::uint64_t matched = 0;  // all lengths found, to compare
  Latencies lookups;

  void stop(const Stopwatch& stopwatch) {
    seconds = stopwatch.wall();
    cpu_seconds = stopwatch.cpu();
  }
};

template <class Subject>
void look_up(const Subject& index, const Workload& work, const Workload::Operation& operation,
             std::vector<Match>& matches, Timed& timed) {
  const auto begin = Clock::now();
  index.match(work.prompt(operation), matches);
  timed.lookups.ns.push_back(
      static_cast<std::uint32_t>(std::chrono::nanoseconds(Clock::now() - begin).count()));
  timed.blocks += operation.count;
  for (const Match& match : matches) timed.matched += match.blocks[0];
}

// A place for other ways from an event to the index, such as from its encoded bytes: all events go
// through here.
template <class Subject>
void tell(Subject& index, const Workload& work, const Workload::Operation& operation) {
  if (operation.kind == Workload::Kind::Store) {
    index.store(operation.worker, operation.parent, work.blocks(operation));
  } else {
    index.remove(operation.worker, work.names(operation));
  }
}

// All of it in order, on one thread.
template <class Subject>
Timed in_order(Subject& index, const Workload& work) {
  Timed timed;
  timed.lookups.ns.reserve(work.operations.size());
  std::vector<Match> matches;
  const Stopwatch stopwatch;
  for (const Workload::Operation& operation : work.operations) {
    if (operation.kind == Workload::Kind::Lookup) {
      look_up(index, work, operation, matches, timed);
    } else {
      tell(index, work, operation);
      timed.blocks += operation.count;
    }
  }
  timed.stop(stopwatch);
  return timed;
}

template <class Subject>
Timed events_only(Subject& index, const Workload& work) {
  Timed timed;
  const Stopwatch stopwatch;
  for (const Workload::Operation& operation : work.operations) {
    if (operation.kind == Workload::Kind::Lookup) continue;
    tell(index, work, operation);
    timed.blocks += operation.count;
  }
  timed.stop(stopwatch);
  return timed;
}

struct Both {
  Timed events;
  Timed lookups;
};

// One thread tells all events, another looks up all prompts over and over until they are told.
template <class Subject>
Both side_by_side(Subject& index, const Workload& work) {
  Both both;
  both.lookups.lookups.ns.reserve(std::size_t{1} << 24);
  std::atomic<bool> done{false};
  std::atomic<bool> ready{false};
  std::thread reader([&] {
    std::vector<Match> matches;
    ready.store(true);
    const Stopwatch stopwatch;
    while (!done.load(std::memory_order_relaxed)) {
      for (const Workload::Operation& operation : work.operations) {
        if (operation.kind != Workload::Kind::Lookup) continue;
        look_up(index, work, operation, matches, both.lookups);
        if (done.load(std::memory_order_relaxed)) break;
      }
    }
    both.lookups.stop(stopwatch);
  });
  while (!ready.load()) std::this_thread::yield();
  both.events = events_only(index, work);
  done.store(true);
  reader.join();
  return both;
}

void print_row(std::string_view who, std::string_view what, Timed& timed) {
  fmt::print(
      "{{\"who\": \"{}\", \"what\": \"{}\", \"blocks\": {}, \"seconds\": {}, \"cpu_seconds\": {}, "
      "\"p50_us\": {}, \"p99_us\": {}, \"matched\": {}}}\n",
      who, what, timed.blocks, timed.seconds, timed.cpu_seconds, timed.lookups.at(0.5),
      timed.lookups.at(0.99), timed.matched);
}

template <class Subject>
void measure_trace(std::string_view who, const Workload& work, std::size_t& step) {
  constexpr std::size_t kSteps = 6;
  {
    Subject index(work.workers);
    Timed all = in_order(index, work);
    print_row(who, "all", all);
    say_progress("trace", ++step, kSteps);
  }
  {
    Subject index(work.workers);
    Timed events = events_only(index, work);
    print_row(who, "events", events);
    say_progress("trace", ++step, kSteps);
  }
  Subject index(work.workers);
  Both both = side_by_side(index, work);
  print_row(who, "events beside lookups", both.events);
  print_row(who, "lookups beside events", both.lookups);
  say_progress("trace", ++step, kSteps);
}

void trace(std::size_t workers, std::size_t cached_blocks, const char* path) {
  const Workload work =
      make_workload(path == nullptr ? make_trace() : load_trace(path), workers, cached_blocks);
  fmt::print(
      "{{\"who\": \"workload\", \"workers\": {}, \"cached_blocks\": {}, \"lookups\": {}, "
      "\"stored\": {}, \"removed\": {}}}\n",
      workers, cached_blocks, work.prompts.size(), work.stored.size(), work.removed.size());
  std::size_t step = 0;
  measure_trace<Indexed>("Baton", work, step);
  measure_trace<NaiveIndex>("naive", work, step);
}

std::vector<NewBlock> chain(std::uint64_t salt, std::size_t count) {
  std::vector<NewBlock> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t number = next_sequence(salt, i);
    blocks.push_back({.engine = number + 1, .block = number});
  }
  return blocks;
}

std::vector<SequenceHash> sequences_of(std::span<const NewBlock> blocks) {
  std::vector<SequenceHash> sequences;
  for (const NewBlock& block : blocks) {
    sequences.push_back(sequences.empty() ? first_sequence(block.block)
                                          : next_sequence(sequences.back(), block.block));
  }
  return sequences;
}

// Many prompts, each held by all workers: to its end, or as far as chance will have it.
void lookups_against(std::size_t blocks, std::size_t workers, bool same_length, int rounds) {
  constexpr std::size_t kMostMemberships = 2'000'000;  // for several prompts
  const std::size_t prompts = std::clamp<std::size_t>(kMostMemberships / (blocks * workers), 1, 32);
  Index index({});
  std::mt19937 chance(7);
  std::vector<std::vector<NewBlock>> made;
  std::vector<std::vector<SequenceHash>> asked;
  for (std::size_t i = 0; i < prompts; ++i) {
    made.push_back(chain(i + 1, blocks));
    asked.push_back(sequences_of(made.back()));
  }
  for (std::uint32_t i = 0; i < workers; ++i) {
    const Slot slot = index.join({.worker = {i + 1}, .rank = 0});
    for (const auto& prompt : made) {
      const std::size_t length = same_length ? blocks : 1 + chance() % blocks;
      index.store(slot, {}, std::span(prompt).first(length), Tier::Device);
    }
  }
  Latencies latencies;
  std::vector<Match> matches;
  for (int round = 0; round < rounds; ++round) {
    for (const auto& prompt : asked) {
      const auto begin = Clock::now();
      index.match(prompt, matches);
      const auto took = std::chrono::nanoseconds(Clock::now() - begin).count();
      if (round > 0) latencies.ns.push_back(static_cast<std::uint32_t>(took));
      if (matches.size() != workers) throw std::runtime_error("a holder is missing");
    }
  }
  fmt::print(
      "{{\"blocks\": {}, \"workers\": {}, \"lengths\": \"{}\", \"p50_us\": {}, "
      "\"p99_us\": {}}}\n",
      blocks, workers, same_length ? "equal" : "any", latencies.at(0.5), latencies.at(0.99));
}

void lookups(int rounds, std::size_t millions) {
  std::size_t step = 0;
  for (const std::size_t workers : {64U, 1024U, 8192U}) {
    for (const std::size_t blocks : {128U, 1000U, 8000U}) {
      for (const bool same_length : {true, false}) {
        if (blocks * workers > millions * 1'000'000) continue;
        lookups_against(blocks, workers, same_length, rounds);
        say_progress("lookups", ++step, 18);
      }
    }
  }
}

// Prompts of 250 blocks; each is held by so many workers.
void memory_of(std::size_t prompts, std::uint32_t holders, std::size_t step) {
  const std::size_t resident = resident_bytes();
  Index index({});
  const std::size_t empty = index.size().bytes;
  for (std::uint32_t i = 0; i < holders; ++i) {
    const Slot slot = index.join({.worker = {i + 1}, .rank = 0});
    for (std::size_t k = 0; k < prompts; ++k)
      index.store(slot, {}, chain(k + 1, 250), Tier::Device);
  }
  const Index::Size size = index.size();
  fmt::print(
      "{{\"blocks\": {}, \"holders\": {}, \"bytes_per_block\": {}, "
      "\"resident_per_block\": {}, \"goal\": {}}}\n",
      size.blocks, holders,
      static_cast<double>(size.bytes - empty) / static_cast<double>(size.blocks),
      static_cast<double>(resident_bytes() - resident) / static_cast<double>(size.blocks),
      32 + 16 * holders);
  say_progress("memory", step, 6);
}

// Workers keep as many blocks as they have room for, and ever new ones come.
void churn(std::size_t millions) {
  constexpr std::size_t kKept = 1000;  // chains of 100 blocks for each of 16 workers
  constexpr std::size_t kWorkers = 16;
  constexpr std::size_t kChain = 100;
  Index index({});
  std::vector<Slot> slots;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    slots.push_back(index.join({.worker = {i + 1}, .rank = 0}));
  }
  const std::size_t all = millions * 1'000'000 / kChain;
  const std::size_t warm = kKept * kWorkers;
  std::vector<std::vector<EngineHash>> kept(kKept * kWorkers);
  std::mt19937 chance(3);
  const Stopwatch stopwatch;
  for (std::size_t i = 0; i < warm + all; ++i) {
    // Now and then one goes out of order, so that pages are left with holes.
    std::size_t at = i % kept.size();
    if (i > warm && chance() % 4 == 0) at = chance() % kept.size();
    const Slot slot = slots[at % kWorkers];
    index.remove(slot, kept[at], Tier::Device);
    const auto made = chain(i + 1, kChain);
    index.store(slot, {}, made, Tier::Device);
    kept[at].clear();
    for (auto block = made.rbegin(); block != made.rend(); ++block) {
      kept[at].push_back(block->engine);
    }
    if (i >= warm && (i - warm) % (all / 10) == 0) {
      fmt::print("{{\"churned\": {}, \"held\": {}, \"bytes\": {}, \"resident\": {}}}\n",
                 (i - warm) * kChain, index.size().blocks, index.size().bytes, resident_bytes());
      say_progress("churn", i - warm, all);
    }
  }
  const double seconds = stopwatch.cpu();
  fmt::print(
      "{{\"churned\": {}, \"held\": {}, \"bytes\": {}, \"resident\": {}, \"cpu_seconds\": {}}}\n",
      all * kChain, index.size().blocks, index.size().bytes, resident_bytes(), seconds);
  for (const Slot slot : slots) index.leave(slot);
  fmt::print("{{\"churned\": {}, \"held\": 0, \"bytes\": {}, \"resident\": {}}}\n", all * kChain,
             index.size().bytes, resident_bytes());
  say_progress("churn", all, all);
}

int run(std::span<char*> arguments) {
  const std::string_view command = arguments.size() > 1 ? arguments[1] : "";
  const auto number = [&](std::size_t at) {
    return static_cast<std::size_t>(std::strtoull(arguments[at], nullptr, 10));
  };
  if (command == "trace" && (arguments.size() == 4 || arguments.size() == 5)) {
    trace(number(2), number(3), arguments.size() == 5 ? arguments[4] : nullptr);
  } else if (command == "lookups" && arguments.size() == 4) {
    lookups(static_cast<int>(number(2)), number(3));
  } else if (command == "memory" && arguments.size() == 2) {
    std::size_t step = 0;
    for (const std::uint32_t holders : {1U, 2U, 4U, 8U, 16U, 64U}) {
      memory_of(16'000 / holders, holders, ++step);
    }
  } else if (command == "churn" && arguments.size() == 3) {
    churn(number(2));
  } else {
    fmt::print(stderr, "usage: see the top of bench/index/measure.cc\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace baton::kvcache

int main(int argc, char** argv) {
  try {
    return baton::kvcache::run(std::span(argv, static_cast<std::size_t>(argc)));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_index: {}\n", error.what());
    return 1;
  }
}
