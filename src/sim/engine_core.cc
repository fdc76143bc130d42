// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/engine_core.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <unistd.h>
#include <utility>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr auto kLeaseTick = std::chrono::milliseconds(10);

std::chrono::nanoseconds from_ms(double ms) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6));
}

std::string unique_engine_id() {
  std::random_device random;
  return fmt::format("sim-{}-{:08x}{:08x}", ::getpid(), random(), random());
}

}  // namespace

EngineCore::EngineCore(const Options& options)
    : engine_id_(unique_engine_id()),
      pool_(options.blocks, options.block_size),
      scheduler_(options, pool_),
      lease_(from_ms(options.lease_ms)) {}

asio::awaitable<void> EngineCore::run_steps() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  TimePoint end = Clock::now();
  while (!stopping_) {
    const auto duration = scheduler_.begin_step();
    if (!duration) {
      co_await work_.wait();
      end = Clock::now();
      continue;
    }
    // Late timers do not add up: a step starts where the one before should have ended, unless the
    // process fell behind by more than a step.
    const TimePoint now = Clock::now();
    if (now - end > *duration) end = now;
    end += *duration;
    if (end > now) {
      timer.expires_at(end);
      co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    } else {
      co_await asio::post(asio::use_awaitable);
    }
    for (TokenProduced& token : scheduler_.finish_step()) {
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

asio::awaitable<void> EngineCore::run_leases() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (!stopping_) {
    if (pins_.empty() && withdrawn_.empty()) {
      co_await leases_.wait();
      continue;
    }
    timer.expires_after(kLeaseTick);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    const TimePoint now = Clock::now();
    for (const auto& [key, blocks] : pins_.expire(now)) {
      counters_.leaked += blocks.size();
      give_back(blocks);
      end_watch(key, false);
    }
    std::erase_if(withdrawn_, [now](const auto& entry) { return entry.second <= now; });
  }
}

void EngineCore::stop() {
  stopping_ = true;
  work_.notify();
  leases_.notify();
}

SequenceId EngineCore::submit(SequenceSpec spec, SequenceListener& listener) {
  const SequenceId id = scheduler_.submit(std::move(spec));
  listeners_.emplace(id, &listener);
  work_.notify();
  return id;
}

void EngineCore::abort(SequenceId id) {
  listeners_.erase(id);
  scheduler_.abort(id);
  work_.notify();
}

void EngineCore::give_back(const std::vector<BlockId>& blocks) {
  if (blocks.empty()) return;
  pool_.release(blocks);
  work_.notify();
}

void EngineCore::keep(const std::string& key, std::vector<BlockId> blocks, std::uint32_t tokens) {
  give_back(pins_.release(key));
  pins_.pin(key, std::move(blocks), tokens, Clock::now() + lease_);
  leases_.notify();
  wake_room(key);
}

void EngineCore::withdraw(const std::string& key) {
  give_back(pins_.release(key));
  end_watch(key, false);
  withdrawn_[key] = Clock::now() + lease_;
  leases_.notify();
  wake_room(key);
}

void EngineCore::watch(const std::string& key, TransferWatch* watch) {
  watches_[key] = watch;
  ++awaiting_transfer_;
}

Result<std::vector<TokenId>> EngineCore::fetch(const std::string& engine_id, const std::string& key,
                                               const std::vector<BlockId>& blocks) {
  if (!engine_id.empty() && engine_id != engine_id_) {
    return fail(Errc::InvalidRequest, "this is another engine than the one asked for");
  }
  const auto pin = pins_.fetch(key, Clock::now(), lease_);
  if (!pin) return fail(pin.error());
  const std::vector<BlockId>& held = (*pin)->blocks;
  std::vector<TokenId> tokens;
  for (const BlockId block : blocks.empty() ? held : blocks) {
    if (std::ranges::find(held, block) == held.end()) {
      return fail(Errc::InvalidRequest,
                  fmt::format("block {} is not held for this hand-off", block));
    }
    const auto content = pool_.tokens_of(block);
    tokens.insert(tokens.end(), content.begin(), content.end());
  }
  return tokens;
}

void EngineCore::release(const std::string& key) {
  give_back(pins_.release(key));
  end_watch(key, true);
}

asio::awaitable<void> EngineCore::until_kept(std::string key) {
  Wakeup changed;
  const auto entry = room_waiters_.emplace(key, &changed);
  // The entry goes also when the wait is cancelled.
  struct Leave {
    std::multimap<std::string, Wakeup*>& waiters;
    std::multimap<std::string, Wakeup*>::iterator entry;
    ~Leave() { waiters.erase(entry); }
  } leave{room_waiters_, entry};
  while (!stopping_ && !pins_.contains(key) && !withdrawn_.contains(key)) {
    co_await changed.wait();
  }
}

void EngineCore::end_watch(const std::string& key, bool taken) {
  const auto found = watches_.find(key);
  if (found == watches_.end()) return;
  found->second->ended = true;
  found->second->taken = taken;
  found->second->changed.notify();
  watches_.erase(found);
  --awaiting_transfer_;
}

void EngineCore::wake_room(const std::string& key) {
  const auto [begin, end] = room_waiters_.equal_range(key);
  for (auto it = begin; it != end; ++it) it->second->notify();
}

}  // namespace baton::sim
