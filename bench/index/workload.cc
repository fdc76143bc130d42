// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "index/workload.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <list>
#include <random>
#include <stdexcept>
#include <unordered_map>

namespace baton::kvcache {
namespace {

constexpr std::size_t kBlocksEach = 32;  // of 16 tokens, in 512

// What the engines call a block: the same on all workers, as with vLLM's hashes of content.
EngineHash name_of(SequenceHash sequence) { return sequence * 0x9E3779B97F4A7C15U + 1; }
BlockHash block_of(std::uint32_t id, std::size_t part) {
  const std::uint64_t number = (static_cast<std::uint64_t>(id) << 8 | part) + 1;
  return next_sequence(number, number);  // any hash will do
}

// One worker's cache: 512 tokens at a time, what was used longest ago goes first.
class Cache {
 public:
  explicit Cache(std::size_t most) : most_(most) {}

  bool has(std::uint32_t id) const { return places_.contains(id); }
  // The end of a prompt first, so that it goes before the beginning.
  void use(const TracePrompt& prompt) {
    for (auto id = prompt.rbegin(); id != prompt.rend(); ++id) {
      const auto found = places_.find(*id);
      if (found == places_.end()) {
        order_.push_front(*id);
        places_[*id] = order_.begin();
      } else {
        order_.splice(order_.begin(), order_, found->second);
      }
    }
  }
  std::optional<std::uint32_t> evict() {
    if (order_.size() <= most_) return std::nullopt;
    const std::uint32_t id = order_.back();
    order_.pop_back();
    places_.erase(id);
    return id;
  }

 private:
  std::size_t most_;
  std::list<std::uint32_t> order_;
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> places_;
};

}  // namespace

std::vector<TracePrompt> load_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("cannot read {}", path));
  std::vector<TracePrompt> prompts;
  for (std::string line; std::getline(file, line);) {
    prompts.push_back(nlohmann::json::parse(line).at("hash_ids").get<TracePrompt>());
  }
  return prompts;
}

// As Mooncake's conversations are: all begin alike, most of them are asked again with more at the
// end, and 24 times 512 tokens are the mean.
std::vector<TracePrompt> make_trace() {
  std::mt19937 chance(1);
  std::uint32_t fresh = 1;
  std::vector<TracePrompt> open(64);
  std::vector<TracePrompt> prompts;
  std::geometric_distribution<std::uint32_t> more(1.0 / 15);
  for (int i = 0; i < 12'000; ++i) {
    TracePrompt& prompt = open[chance() % open.size()];
    if (prompt.empty() || chance() % 100 < 42 || prompt.size() > 200) prompt.assign(1, 0);
    for (std::uint32_t count = 1 + more(chance); count > 0; --count) prompt.push_back(fresh++);
    prompts.push_back(prompt);
  }
  return prompts;
}

Workload make_workload(const std::vector<TracePrompt>& trace, std::size_t workers,
                       std::size_t cached_blocks) {
  Workload work;
  work.workers = workers;
  std::vector<Cache> caches(workers, Cache(cached_blocks / kBlocksEach));
  std::unordered_map<std::uint32_t, std::vector<SequenceHash>> sequences;  // of each id's blocks
  std::unordered_map<std::uint32_t, std::uint32_t> served_by;  // conversation, by its second id
  for (std::size_t turn = 0; turn < trace.size(); ++turn) {
    const TracePrompt& prompt = trace[turn];
    if (prompt.empty()) continue;
    work.operations.push_back({.kind = Workload::Kind::Lookup,
                               .worker = 0,
                               .parent = {},
                               .first = work.prompts.size(),
                               .count = prompt.size() * kBlocksEach});
    std::optional<SequenceHash> before;
    for (const std::uint32_t id : prompt) {
      auto& made = sequences[id];
      for (std::size_t part = 0; part < kBlocksEach && made.size() < kBlocksEach; ++part) {
        const BlockHash block = block_of(id, part);
        before = before ? next_sequence(*before, block) : first_sequence(block);
        made.push_back(*before);
      }
      before = made.back();
      work.prompts.insert(work.prompts.end(), made.begin(), made.end());
    }

    const std::uint32_t topic = prompt[std::min<std::size_t>(1, prompt.size() - 1)];
    const auto worker =
        served_by.try_emplace(topic, static_cast<std::uint32_t>(turn % workers)).first->second;
    Cache& cache = caches[worker];
    std::size_t cached = 0;
    while (cached < prompt.size() && cache.has(prompt[cached])) ++cached;
    if (cached < prompt.size()) {
      const std::size_t first = work.stored.size();
      for (std::size_t i = cached; i < prompt.size(); ++i) {
        for (std::size_t part = 0; part < kBlocksEach; ++part) {
          work.stored.push_back({.engine = name_of(sequences.at(prompt[i])[part]),
                                 .block = block_of(prompt[i], part)});
        }
      }
      std::optional<EngineHash> parent;
      if (cached > 0) parent = name_of(sequences.at(prompt[cached - 1]).back());
      work.operations.push_back({.kind = Workload::Kind::Store,
                                 .worker = worker,
                                 .parent = parent,
                                 .first = first,
                                 .count = work.stored.size() - first});
    }
    cache.use(prompt);
    const std::size_t first = work.removed.size();
    while (const auto id = cache.evict()) {
      const auto& made = sequences.at(*id);
      for (auto sequence = made.rbegin(); sequence != made.rend(); ++sequence) {
        work.removed.push_back(name_of(*sequence));
      }
    }
    if (work.removed.size() > first) {
      work.operations.push_back({.kind = Workload::Kind::Remove,
                                 .worker = worker,
                                 .parent = {},
                                 .first = first,
                                 .count = work.removed.size() - first});
    }
  }
  return work;
}

}  // namespace baton::kvcache
