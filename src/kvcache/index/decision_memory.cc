// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/decision_memory.h"

#include <algorithm>
#include <limits>

namespace baton::kvcache {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr std::uint32_t kTiersOfAll = 1;
// Runs that are forgotten or put off in one call.
constexpr std::size_t kSteps = 256;
// Bounds the work to make room: enough for the longest prompt, in parts that were sent one by one.
constexpr std::size_t kMostSteps = 4'096;

}  // namespace

DecisionMemory::DecisionMemory(Limits limits)
    : limits_(limits),
      blocks_{.most = limits.blocks},
      first_due_(std::numeric_limits<Tick>::max()) {
  for (std::size_t i = 0; i < kShards; ++i) shards_.emplace_back(arena_, blocks_);
}

// Rounded up.
DecisionMemory::Tick DecisionMemory::tick_of(Time time) {
  const auto since = std::chrono::ceil<std::chrono::milliseconds>(time.time_since_epoch());
  return (since + kTick - std::chrono::milliseconds(1)) / kTick;
}

DecisionMemory::Record& DecisionMemory::record_of(Holder holder) {
  const auto found = records_.find(holder);
  if (found != records_.end()) return found->second;
  Record record{.number = next_++, .slot = slots_.open(holder), .runs = {}};
  holders_[record.number] = holder;
  return records_.emplace(holder, std::move(record)).first->second;
}

void DecisionMemory::remember(Holder holder, std::span<const SequenceHash> prompt, Time now) {
  prompt = prompt.first(std::min({prompt.size(), kLongest, limits_.blocks}));
  if (prompt.empty()) return;
  thread_local std::vector<Link> links;
  links.clear();
  links.reserve(prompt.size());
  for (const SequenceHash block : prompt) links.push_back({.engine = 0, .sequence = block});

  const locks::Lock hold(mutex_);
  expire(now, kSteps);
  const Tick until = tick_of(now + limits_.ttl);
  if (remembered_ + links.size() > limits_.blocks) {
    // Marks its known blocks as used, so that they do not go first.
    follow(record_of(holder), links, until, 0);
    std::size_t wanted = links.size();
    {
      const Shard& shard = shards_[shard_of(prompt.front())];
      const locks::Lock hold_shard(shard.lock());
      wanted -= shard.match_one(prompt, record_of(holder).slot).back();
    }
    for (std::size_t i = 0; i < kMostSteps && remembered_ + wanted > limits_.blocks; ++i)
      settle_first();
  }
  follow(record_of(holder), links, until, limits_.blocks - remembered_);
  note_first();
}

void DecisionMemory::follow(Record& record, std::span<const Link> links, Tick until,
                            std::size_t room) {
  const std::size_t number = shard_of(links.front().sequence);
  Shard& shard = shards_[number];
  RunNumber run = kNoRun;
  std::uint32_t last = 0;
  while (!links.empty()) {
    const auto chunk = links.first(std::min<std::size_t>(links.size(), kMostInRun));
    const locks::Lock hold(shard.lock());
    Shard::Part part = shard.find(run, last, chunk);
    if (part.count == 0) {
      const auto fitting = chunk.first(std::min(chunk.size(), room));
      if (fitting.empty()) break;
      part = shard.make(run, last, fitting);
      if (part.count == 0) break;
    }
    const BlockPlace place = place_of(number, part.run, 0);
    // Takes no more of a shared run than there is room for.
    const auto known = record.runs.find(place);
    const std::uint32_t had = known == record.runs.end() ? 0 : known->second.back().end;
    const std::size_t most = std::max<std::size_t>(had, part.begin) + room;
    const auto end =
        static_cast<std::uint32_t>(std::min<std::size_t>(part.begin + part.count, most));
    if (end <= part.begin) break;
    room -= use(record, shard, place, end, until);
    run = part.run;
    last = end - 1;
    links = links.subspan(end - part.begin);
    shard.publish_bytes();
  }
}

std::uint32_t DecisionMemory::use(Record& record, Shard& shard, BlockPlace run, std::uint32_t end,
                                  Tick until) {
  const auto [found, fresh] = record.runs.try_emplace(run);
  Steps& steps = found->second;
  const std::uint32_t had = fresh ? 0 : steps.back().end;
  steps.erase(
      std::remove_if(steps.begin(), steps.end(),
                     [&](const Step& step) { return step.end <= end && step.until <= until; }),
      steps.end());
  const auto longer =
      std::ranges::find_if(steps, [&](const Step& step) { return step.end >= end; });
  if (longer == steps.end() || longer->until < until)
    steps.insert(longer, {.until = until, .end = end});
  if (fresh) buckets_[until].push_back({.record = record.number, .run = run});
  if (end <= had) return 0;
  shard.hold_free({.run = run_of(run), .begin = had, .count = end - had}, record.slot, kTiersOfAll,
                  slots_.state(record.slot).tally);
  remembered_ += end - had;
  return end - had;
}

void DecisionMemory::settle_first() {
  const auto bucket = buckets_.begin();
  const Tick tick = bucket->first;
  const Due due = bucket->second.back();
  bucket->second.pop_back();
  if (bucket->second.empty()) buckets_.erase(bucket);
  const auto holder = holders_.find(due.record);
  if (holder == holders_.end()) return;  // forgotten as a whole
  const auto at = records_.find(holder->second);
  Record& record = at->second;
  const auto run = record.runs.find(due.run);
  Steps& steps = run->second;
  const std::uint32_t end = steps.back().end;
  while (!steps.empty() && steps.back().until <= tick) steps.pop_back();
  drop(record, due.run, end, steps.empty() ? 0 : steps.back().end);
  if (!steps.empty()) {
    buckets_[steps.back().until].push_back(due);
    return;
  }
  record.runs.erase(run);
  if (!record.runs.empty()) return;
  slots_.close(record.slot);
  holders_.erase(holder);
  records_.erase(at);
}

void DecisionMemory::drop(Record& record, BlockPlace run, std::uint32_t end,
                          std::uint32_t new_end) {
  if (end == new_end) return;
  Shard& shard = shards_[shard_index(run)];
  Tally& tally = slots_.state(record.slot).tally;
  const locks::Lock hold(shard.lock());
  if (new_end == 0) {
    shard.release_all(run_of(run), record.slot, tally);
  } else {
    for (std::uint32_t at = end; at > new_end; --at)
      shard.release(run_of(run), at - 1, record.slot, kTiersOfAll, tally);
  }
  shard.publish_bytes();
  remembered_ -= end - new_end;
}

bool DecisionMemory::any_due(Time now) const {
  return !buckets_.empty() && Time(buckets_.begin()->first * kTick) <= now;
}

// Whether all is gone that was due.
bool DecisionMemory::expire(Time now, std::size_t steps) {
  for (; steps > 0 && any_due(now); --steps) settle_first();
  note_first();
  return !any_due(now);
}

void DecisionMemory::note_first() {
  first_due_.store(buckets_.empty() ? std::numeric_limits<Tick>::max() : buckets_.begin()->first,
                   std::memory_order_relaxed);
}

void DecisionMemory::tidy(Time now) {
  for (bool done = false; !done;) {
    const locks::Lock hold(mutex_);
    done = expire(now, kSteps);
  }
}

void DecisionMemory::forget(Holder holder) {
  const locks::Lock hold(mutex_);
  const auto found = records_.find(holder);
  if (found == records_.end()) return;
  Record& record = found->second;
  for (const auto& [run, steps] : record.runs) drop(record, run, steps.back().end, 0);
  slots_.close(record.slot);
  holders_.erase(record.number);
  records_.erase(found);
}

void DecisionMemory::match(std::span<const SequenceHash> prompt, Time now,
                           std::vector<Match>& matches) {
  if (prompt.empty()) return matches.clear();
  const Tick first = first_due_.load(std::memory_order_relaxed);
  if (first <= now.time_since_epoch() / kTick) {
    if (mutex_.try_lock()) {
      const locks::Lock hold(mutex_, std::adopt_lock);
      expire(now, kSteps);
    }
  }
  const Shard& shard = shards_[shard_of(prompt.front())];
  const locks::Lock hold(shard.lock());
  shard.match(prompt, slots_, matches);
}

Index::Size DecisionMemory::size() const {
  const locks::Lock hold(mutex_);
  Index::Size size{.blocks = 0,
                   .memberships = remembered_,
                   .bytes = sizeof(*this) + arena_.bytes() + slots_.bytes()};
  for (const Shard& shard : shards_) {
    size.blocks += shard.held();
    size.bytes += shard.bytes();
  }
  constexpr std::size_t kEach = sizeof(std::pair<BlockPlace, Steps>) + sizeof(Due);
  for (const auto& [holder, record] : records_)
    size.bytes += 2 * sizeof(Record) + record.runs.size() * 2 * kEach;
  return size;
}

}  // namespace baton::kvcache
