// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/kv_cache_view.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace baton::kvcache {
namespace {

// Fraction of the room for events: a prompt that is sent is remembered for a short time only.
constexpr std::size_t kShareOfDecisions = 4;

// Events and answers come on different ways: after this time a prompt's events have come, or will
// not.
constexpr std::chrono::milliseconds kOnTheWay{500};
// More are not judged: they keep prompts in memory.
constexpr std::size_t kMostDeferred = 1'024;

using Hit = scheduling::KnownPrompt::Hit;
using Tiers = std::array<std::uint32_t, kTiers>;

// A result row. It is written in place: thousands of temporaries would cost more than all the rest.
void begin(Overlap& row, Holder holder, std::uint32_t block_size, Trusted source,
           std::uint32_t told) {
  row.holder = holder;
  row.block_size = block_size;
  row.told = told;
  row.source = source;
}

void begin(Hit& row, Holder holder, std::uint32_t block_size, Trusted /*source*/,
           std::uint32_t /*told*/) {
  row.key = {holder.worker, holder.rank};
  row.block_size = block_size;
}

// If sources differ, the larger value counts.
void believe(Overlap& row, const Tiers& blocks) {
  for (std::size_t tier = 0; tier < kTiers; ++tier)
    row.blocks[tier] = std::max(row.blocks[tier], blocks[tier]);
}

void believe(Hit& row, const Tiers& blocks) {
  const auto upto = [&blocks](Tier tier) { return blocks[static_cast<std::size_t>(tier)]; };
  const std::uint32_t device = std::max(row.device, upto(Tier::Device));
  const std::uint32_t host = std::max(row.device + row.host, upto(Tier::Host));
  const std::uint32_t all = std::max(row.device + row.host + row.disk, upto(Tier::External));
  row.device = device;
  row.host = host - device;
  row.disk = all - host;
}

}  // namespace

KvCacheView::KvCacheView(const config::KvIndex& settings, telemetry::Registry& metrics,
                         telemetry::Logger& log)
    : settings_(settings),
      log_(log),
      index_({.blocks = settings.blocks}),
      decisions_({.ttl = settings.decision_ttl, .blocks = settings.blocks / kShareOfDecisions}),
      predictions_(
          {.ttl = settings.prediction_ttl, .blocks = settings.blocks / kShareOfDecisions}) {
  add_metrics(metrics);
}

HashPlan KvCacheView::plan(std::string_view model) const {
  if (settings_.source == config::IndexSource::Off) return {};
  const auto known = known_.get();
  const auto found = known->plans.find(model);
  return found == known->plans.end() ? HashPlan() : found->second;
}

const KvCacheView::Known::Entry* KvCacheView::Known::look_up(Holder holder) const {
  const auto found = numbers.find(holder);
  return found == numbers.end() ? nullptr : &caches[found->second];
}

void KvCacheView::publish(Table table) {
  Known known{.caches = {}, .numbers = {}, .plans = std::move(table.plans)};
  known.caches.reserve(table.caches.size());
  known.numbers.reserve(table.caches.size());
  for (auto& [holder, cache] : table.caches) {
    known.numbers.emplace(holder, static_cast<std::uint32_t>(known.caches.size()));
    const std::atomic<CacheTrust>* const trust = cache->trust().get();
    known.caches.push_back({holder, std::move(cache), trust});
  }
  known_.set(std::move(known));
}

template <class Row>
std::vector<Row> KvCacheView::collect(const PromptBlocks& prompt) const {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  // All are kept for the next call.
  static thread_local std::vector<Match> told;
  static thread_local std::vector<Match> remembered;
  static thread_local std::vector<std::uint32_t> row;  // by number: which of `rows` it is
  std::vector<Row> rows;
  const auto known = known_.get();
  const auto now = Clock::now();
  row.assign(known->caches.size(), kNone);
  for (const PromptBlocks::Hashes& hashes : prompt.by_shape) {
    // Calls visit(match, number, trusted) for each that cuts its blocks so.
    const auto each_match = [&](const std::vector<Match>& matches, auto visit) {
      std::size_t next = 0;
      for (const Match& match : matches) {
        const Known::Entry* const entry = known->find(match.holder, next);
        if (entry == nullptr) continue;
        next = static_cast<std::size_t>(entry - known->caches.data()) + 1;
        const CacheTrust trust = entry->trust->load(std::memory_order_relaxed);
        if (trust.shape() != hashes.shape) continue;
        visit(match, next - 1, trust.trusted(settings_.source));
      }
    };
    index_.match(hashes.sequence, told);
    rows.reserve(rows.size() + told.size());
    each_match(told, [&](const Match& match, std::size_t number, Trusted source) {
      row[number] = static_cast<std::uint32_t>(rows.size());
      Row& fresh = rows.emplace_back();
      begin(fresh, match.holder, hashes.shape.size, source, match.blocks.back());
      if (source == Trusted::Events) believe(fresh, match.blocks);
    });
    const auto add = [&](DecisionMemory& memory, Trusted trusted) {
      memory.match(hashes.sequence, now, remembered);
      each_match(remembered, [&](const Match& match, std::size_t number, Trusted source) {
        if (source != trusted) return;
        if (row[number] == kNone) {
          row[number] = static_cast<std::uint32_t>(rows.size());
          begin(rows.emplace_back(), match.holder, hashes.shape.size, source, 0);
        }
        believe(rows[row[number]], match.blocks);
      });
    };
    add(decisions_, Trusted::Decisions);
    if (settings_.prediction_ttl.count() > 0) add(predictions_, Trusted::Events);
  }
  return rows;
}

std::vector<Overlap> KvCacheView::match(const PromptBlocks& prompt) const {
  return collect<Overlap>(prompt);
}

std::vector<Hit> KvCacheView::hits(const PromptBlocks& prompt) const {
  return collect<Hit>(prompt);
}

KvCacheView::Told KvCacheView::told(const PromptBlocks& prompt, Holder holder) const {
  const auto cache = find(holder);
  if (!cache) return {};
  const auto hashes =
      std::ranges::find(prompt.by_shape, cache->shape(), &PromptBlocks::Hashes::shape);
  if (hashes == prompt.by_shape.end()) return {};
  const auto match = index_.match_one(cache->slot(), hashes->sequence);
  Told told{.blocks = match && match->holder == holder ? match->blocks.back() : 0,
            .of = static_cast<std::uint32_t>(hashes->sequence.size()),
            .tokens = 0,
            .most = 0,
            .source = cache->trusted(settings_.source)};
  const std::size_t usable = reusable_blocks(prompt.tokens, hashes->shape);
  told.tokens = std::min<std::size_t>(told.blocks, usable) * hashes->shape.size;
  told.most = usable * hashes->shape.size;
  return told;
}

void KvCacheView::sent(Holder holder, const PromptBlocks& prompt) {
  const auto cache = find(holder);
  if (!cache) return;
  // Its events will not distinguish its blocks from others. The judgement of feeds logs that.
  if (cache->sent({.salts = prompt.salted, .adapters = prompt.adapted, .keys = prompt.keyed})) {
    const locks::Lock lock(mutex_);
    expecting_.push_back(holder);
  }
  const Trusted source = cache->trusted(settings_.source);
  const bool predicted = source == Trusted::Events && settings_.prediction_ttl.count() > 0;
  if (!predicted && source != Trusted::Decisions) return;
  const auto hashes =
      std::ranges::find(prompt.by_shape, cache->shape(), &PromptBlocks::Hashes::shape);
  if (hashes == prompt.by_shape.end()) return;
  (predicted ? predictions_ : decisions_).remember(holder, hashes->sequence, Clock::now());
}

void KvCacheView::computed(Holder holder, const Computed& what) {
  const auto cache = find(holder);
  if (!cache || cache->health() == FeedHealth::None) return;
  if (what.fills_blocks && cache->expect_events(what.sent, Clock::now())) {
    const locks::Lock lock(mutex_);
    expecting_.push_back(holder);
  }
  // A feed that says nothing is not wrong: that it is silent is said elsewhere.
  if (!what.reported || cache->health() != FeedHealth::Live || cache->mixed()) return;
  const FeedAccuracy::Sample sample{.least = std::min(what.told_before, what.told_after),
                                    .most = std::max(what.told_before, what.told_after),
                                    .reported = *what.reported};
  if (sample.reported <= sample.most || !what.blocks) return compare(*cache, sample);
  // The engine had more: of that, and of this very prompt, events may be on their way.
  const locks::Lock lock(mutex_);
  if (deferred_.size() < kMostDeferred) deferred_.push_back({holder, what, Clock::now()});
}

void KvCacheView::settle(Clock::time_point now) {
  decisions_.tidy(now);
  predictions_.tidy(now);
  std::vector<Deferred> due;
  {
    const locks::Lock lock(mutex_);
    while (!deferred_.empty() && deferred_.front().since + kOnTheWay <= now) {
      due.push_back(std::move(deferred_.front()));
      deferred_.pop_front();
    }
  }
  for (const Deferred& doubt : due) {
    const auto cache = find(doubt.holder);
    if (!cache || cache->health() != FeedHealth::Live || cache->mixed()) continue;
    const Computed& what = doubt.what;
    const std::uint64_t by_now = told(*what.blocks, doubt.holder).tokens;
    compare(*cache, {.least = std::min(what.told_before, what.told_after),
                     .most = std::max({what.told_before, what.told_after, by_now}),
                     .reported = *what.reported});
  }
}

std::vector<Holder> KvCacheView::take_expecting() {
  const locks::Lock lock(mutex_);
  return std::exchange(expecting_, {});
}

void KvCacheView::compare(Cache& cache, const FeedAccuracy::Sample& sample) {
  if (!cache.compare(sample)) return;
  const Cache::Identity& identity = cache.identity();
  const auto rank = static_cast<std::int64_t>(identity.holder.rank);
  const double wrong = cache.truth().error;
  if (cache.believed()) {
    log_.info(
        "kv_feed_right_again",
        {{"model", identity.model}, {"worker", identity.worker}, {"rank", rank}, {"wrong", wrong}});
  } else {
    log_.warning(
        "kv_feed_wrong",
        {{"model", identity.model}, {"worker", identity.worker}, {"rank", rank}, {"wrong", wrong}});
  }
}

std::vector<std::shared_ptr<Cache>> KvCacheView::all() const {
  const auto known = known_.get();
  std::vector<std::shared_ptr<Cache>> caches;
  caches.reserve(known->caches.size());
  for (const Known::Entry& entry : known->caches) caches.push_back(entry.cache);
  return caches;
}

std::shared_ptr<Cache> KvCacheView::find(Holder holder) const {
  const auto known = known_.get();
  const Known::Entry* const entry = known->find(holder, 0);
  return entry == nullptr ? nullptr : entry->cache;
}

void KvCacheView::forget(Holder holder) {
  decisions_.forget(holder);
  predictions_.forget(holder);
}

}  // namespace baton::kvcache
