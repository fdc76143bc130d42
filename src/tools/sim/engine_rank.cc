// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/engine_rank.h"

#include "net/await.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <utility>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// Far more sequences than one rank will ever see.
constexpr unsigned kSequenceBits = 48;

}  // namespace

EngineRank::EngineRank(const Options& options, FaultTable& faults, std::uint32_t index,
                       std::string engine_id)
    : options_(options),
      faults_(faults),
      index_(index),
      engine_id_(std::move(engine_id)),
      pool_(options.blocks, options.block_size,
            {.hasher = BlockHasher::of(options),
             .caching = options.caches_prefixes(),
             .recording = options.tells_of_blocks(),
             .host_blocks = options.kv.host_blocks}),
      scheduler_(options, pool_, (SequenceId{index} << kSequenceBits) + 1) {}

asio::awaitable<void> EngineRank::run_steps() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  TimePoint end = Clock::now();
  bool stepped = false;
  while (!stopping_) {
    const auto planned = scheduler_.begin_step();
    if (!planned) {
      // Reports the changes by an aborted sequence. Before the first step there are none.
      if (stepped) report();
      co_await work_.wait();
      end = Clock::now();
      continue;
    }
    // Late timers do not add up: a step starts where the one before should have ended, unless the
    // process fell behind by more than a step.
    const TimePoint now = Clock::now();
    const auto duration =
        std::chrono::duration_cast<std::chrono::nanoseconds>(*planned * faults_.step_factor(now));
    if (now - end > duration) end = now;
    end += duration;
    if (end > now) {
      timer.expires_at(end);
      co_await timer.async_wait(net::kAwait);
    } else {
      co_await asio::post(asio::use_awaitable);
    }
    stepped = true;
    std::vector<TokenProduced> produced = scheduler_.finish_step();
    stats.step_tokens.observe(static_cast<double>(scheduler_.prefill_tokens() + produced.size()));
    report();
    for (TokenProduced& token : produced) {
      const auto found = listeners_.find(token.sequence);
      if (found == listeners_.end()) {
        give_back(token.kept_blocks);
        continue;
      }
      SequenceListener* listener = found->second;
      if (token.last) listeners_.erase(found);
      listener->on_token(token);
    }
  }
}

void EngineRank::stop() {
  stopping_ = true;
  work_.notify();
}

SequenceId EngineRank::submit(SequenceSpec spec, SequenceListener& listener) {
  const SequenceId id = scheduler_.submit(std::move(spec));
  listeners_.emplace(id, &listener);
  work_.notify();
  return id;
}

void EngineRank::abort(SequenceId id) {
  listeners_.erase(id);
  scheduler_.abort(id);
  work_.notify();
}

void EngineRank::give_back(const std::vector<BlockId>& blocks) {
  if (blocks.empty()) return;
  pool_.release(blocks);
  work_.notify();
}

void EngineRank::report_through(std::optional<KvChannel> channel) {
  reporter_ = std::make_unique<KvReporter>(options_, index_, pool_, faults_, std::move(channel));
}

bool EngineRank::reset_cache() {
  if (pool_.available() < pool_.total()) return false;
  pool_.clear();
  report();
  return true;
}

void EngineRank::report() {
  if (reporter_) reporter_->report();
}

}  // namespace baton::sim
