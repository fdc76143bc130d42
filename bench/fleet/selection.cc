// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// What it takes to pick a worker and count a request on it, without a network: WorkerSet::book for
// fleets of several sizes. Prints one JSON object per line.

#include "fleet/worker_set.h"
#include "unit/scheduling/book_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

namespace baton::fleet {
namespace {

using model::Policy;

constexpr std::array<std::size_t, 4> kSizes{20, 200, 2'000, 4'000};
constexpr std::array kPolicies{Policy::RoundRobin, Policy::Random, Policy::PowerOfTwo,
                               Policy::LeastLoaded};
constexpr double kSliceNs = 20e6;
constexpr int kSlices = 9;
constexpr std::size_t kBatch = 64;  // bookings between two looks at the clock
constexpr std::size_t kOpen = 256;  // requests under way

// Workers that are all up. Every second slot of memory between them is given back, so that they
// lie apart, as those of a fleet that grew.
struct Scene {
  Scene(Policy policy, std::size_t size) : set(model::Role::Aggregated, policy) {
    std::vector<std::unique_ptr<std::array<char, 700>>> gaps;
    for (std::size_t i = 0; i < size; ++i) {
      model::WorkerSpec spec;
      spec.endpoint = {fmt::format("10.0.{}.{}", i / 250, i % 250 + 1), 8000};
      spec.role = model::Role::Aggregated;
      auto worker = std::make_shared<Worker>(model::WorkerId{i + 1}, spec, config::Health{});
      worker->answered();
      set.add(std::move(worker));
      gaps.push_back(std::make_unique<std::array<char, 700>>());
    }
  }

  WorkerSet set;
  Random random = std::mt19937_64(20240607);
  std::vector<Booking> open = std::vector<Booking>(kOpen);
  std::size_t next = 0;
};

// The oldest of the requests under way ends, another one begins.
void turn_over(Scene& scene) {
  auto booking = test::book_worker(scene.set, {}, scene.random);
  if (!booking) {
    fmt::print(stderr, "no worker: {}\n", booking.error().message());
    std::exit(2);
  }
  Booking& slot = scene.open[scene.next++ % kOpen];
  slot = Booking();
  slot = std::move(*booking);
}

// Of this thread alone, so that others on the machine do not count.
double cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double ns_per_booking(Scene& scene) {
  std::size_t count = 0;
  const double begin = cpu_ns();
  double now = begin;
  while (now - begin < kSliceNs) {
    for (std::size_t i = 0; i < kBatch; ++i) turn_over(scene);
    count += kBatch;
    now = cpu_ns();
  }
  return (now - begin) / static_cast<double>(count);
}

void measure(Policy policy, std::size_t size) {
  Scene scene(policy, size);
  for (std::size_t i = 0; i < std::max(size, kOpen); ++i) turn_over(scene);
  std::array<double, kSlices> slices;
  for (double& slice : slices) slice = ns_per_booking(scene);
  std::ranges::sort(slices);
  fmt::print(R"({{"policy":"{}","workers":{},"ns":{:.1f},"lowest":{:.1f},"highest":{:.1f}}})"
             "\n",
             model::to_string(policy), size, slices[kSlices / 2], slices.front(), slices.back());
}

}  // namespace
}  // namespace baton::fleet

int main() {
  for (const auto policy : baton::fleet::kPolicies) {
    for (const auto size : baton::fleet::kSizes) baton::fleet::measure(policy, size);
  }
}
