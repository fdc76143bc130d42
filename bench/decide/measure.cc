// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// What one decision costs: from a prompt's tokens to a booked worker. Prints one JSON object per
// line, and how far it is to stderr.
//   bench_decide WORKERS DECISIONS

#include "decide/fleet_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace baton::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Latencies {
  std::vector<double> us;

  void add(Clock::duration took) {
    us.push_back(std::chrono::duration<double, std::micro>(took).count());
  }
  double at(double part) {
    if (us.empty()) return 0;
    const auto place = static_cast<std::ptrdiff_t>(part * static_cast<double>(us.size() - 1));
    std::ranges::nth_element(us, us.begin() + place);
    return us[static_cast<std::size_t>(place)];
  }
};

void print_row(std::string_view who, std::string_view what, std::size_t workers,
               Latencies& latencies) {
  fmt::print(
      "{{\"who\": \"{}\", \"what\": \"{}\", \"workers\": {}, \"decisions\": {}, \"p50_us\": "
      "{:.2f}, "
      "\"p99_us\": {:.2f}}}\n",
      who, what, workers, latencies.us.size(), latencies.at(0.5), latencies.at(0.99));
}

// So many requests run at any time: for each that begins, the oldest ends.
template <class Decider>
void measure(std::string_view who, const Traffic& traffic, std::size_t decisions,
             Decider& decider) {
  std::deque<typename Decider::Booked> running;
  const std::size_t at_once = kActivePerWorker * traffic.workers;
  Latencies hash, look_up, book, all, remember;
  constexpr std::size_t kWarmup = 50;
  for (std::size_t i = 0; i < at_once; ++i) {
    running.push_back(decider.preload(traffic.prompt(i)));
  }
  for (std::size_t i = 0; i < decisions + kWarmup; ++i) {
    const std::vector<TokenId> prompt = traffic.prompt(at_once + i);
    running.pop_front();
    const auto begin = Clock::now();
    const auto hashes = decider.hash(prompt);
    const auto hashed = Clock::now();
    decider.look_up(hashes);
    const auto looked_up = Clock::now();
    running.push_back(decider.book(prompt.size()));
    const auto booked = Clock::now();
    decider.remember(running.back());
    const auto remembered = Clock::now();
    if (i < kWarmup) continue;
    hash.add(hashed - begin);
    look_up.add(looked_up - hashed);
    book.add(booked - looked_up);
    all.add(booked - begin);
    remember.add(remembered - booked);
  }
  print_row(who, "hash", traffic.workers, hash);
  print_row(who, "look up", traffic.workers, look_up);
  print_row(who, "weigh and book", traffic.workers, book);
  print_row(who, "all", traffic.workers, all);
  print_row(who, "remember", traffic.workers, remember);
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  using namespace baton::bench;
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_decide WORKERS DECISIONS\n");
    return 2;
  }
  try {
    const std::size_t workers = std::strtoul(argv[1], nullptr, 10);
    const std::size_t decisions = std::strtoul(argv[2], nullptr, 10);
    const Traffic traffic(workers);
    for (const auto policy : {baton::model::Policy::Kv, baton::model::Policy::Ttft}) {
      const std::string who = fmt::format("Baton, {}", baton::model::to_string(policy));
      fmt::print(stderr, "  {} workers: {}\n", workers, who);
      BatonDecider decider(traffic, policy);
      measure(who, traffic, decisions, decider);
    }
    fmt::print(stderr, "  {} workers: naive\n", workers);
    NaiveDecider naive(traffic);
    measure("naive", traffic, std::min<std::size_t>(decisions, 200), naive);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_decide: {}\n", error.what());
    return 1;
  }
  return 0;
}
