// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/engine_core.h"

#include "net/await.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
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

std::string unique_engine_id() {
  std::random_device random;
  return fmt::format("sim-{}-{:08x}{:08x}", ::getpid(), random(), random());
}

}  // namespace

EngineCore::EngineCore(const Options& options, FaultTable& faults)
    : lease_(from_ms(options.lease_ms)),
      sizes_{options.tp_size, options.pp_size},
      fetch_again_(options.mode() != model::HandoffMode::ContextFirst &&
                   options.mode() != model::HandoffMode::Bootstrap) {
  const std::string name = options.engine_id.empty() ? unique_engine_id() : options.engine_id;
  for (std::uint32_t i = 0; i < options.dp_size; ++i) {
    std::string engine_id = options.dp_size == 1 ? name : fmt::format("{}_dp{}", name, i);
    ranks_.push_back(std::make_unique<EngineRank>(options, faults, i, std::move(engine_id)));
  }
}

EngineRank& EngineCore::least_loaded() {
  return **std::ranges::min_element(ranks_, {}, [](const auto& rank) { return rank->requests; });
}

asio::awaitable<void> EngineCore::run_leases() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (!stopping_) {
    const bool holding =
        std::ranges::any_of(ranks_, [](const auto& rank) { return !rank->pins().empty(); });
    if (!holding && withdrawn_.empty()) {
      co_await leases_.wait();
      continue;
    }
    timer.expires_after(kLeaseTick);
    co_await timer.async_wait(net::kAwait);
    const TimePoint now = Clock::now();
    for (const auto& rank : ranks_) {
      for (const auto& [key, blocks, fetched] : rank->pins().expire(now)) {
        ++counters_.expired;
        counters_.leaked += blocks.size();
        if (fetched) counters_.leaked_in_transfer += blocks.size();
        rank->give_back(blocks);
        end_watch(key, false);
      }
    }
    std::erase_if(withdrawn_, [now](const auto& entry) { return entry.second <= now; });
  }
}

void EngineCore::stop() {
  stopping_ = true;
  for (const auto& rank : ranks_) rank->stop();
  leases_.notify();
}

void EngineCore::keep(EngineRank& rank, const std::string& key, std::vector<BlockId> blocks,
                      std::uint32_t tokens) {
  free_pin(key);
  rank.pins().pin(key, std::move(blocks), tokens, Clock::now() + lease_);
  leases_.notify();
  wake_room(key);
}

bool EngineCore::withdraw(const std::string& key) {
  const EngineRank* rank = holder(key);
  const bool moving = rank != nullptr && rank->pins().transfer_of(key) != 0;
  free_pin(key);
  end_watch(key, false);
  withdrawn_[key] = Clock::now() + lease_;
  leases_.notify();
  wake_room(key);
  return moving;
}

void EngineCore::watch(EngineRank& rank, const std::string& key, TransferWatch* watch) {
  end_watch(key, false);  // a room given out twice: the older leg has lost it
  watches_[key] = {watch, &rank};
  ++rank.awaiting_transfer;
}

Result<void> EngineCore::greet(const PeerCall& call) const {
  const bool known =
      call.engine_id.empty() || std::ranges::any_of(ranks_, [&call](const auto& rank) {
        return rank->engine_id() == call.engine_id;
      });
  if (!known) return fail(Errc::InvalidRequest, "this is another engine than the one asked for");
  if (call.sizes && *call.sizes != sizes_) {
    return fail(
        Errc::InvalidRequest,
        fmt::format("this engine has tp_size {} and pp_size {}, not {} and {}", sizes_.tensor,
                    sizes_.pipeline, call.sizes->tensor, call.sizes->pipeline));
  }
  return {};
}

Result<Fetched> EngineCore::fetch(const PeerCall& call) {
  const auto rank = rank_asked_for(call);
  if (!rank) return fail(rank.error());
  const auto pin = (*rank)->pins().fetch(call.key, Clock::now(), lease_);
  if (!pin) {
    if (!call.wait) ++counters_.unrecognized;
    return fail(pin.error());
  }
  const std::vector<BlockId>& held = (*pin)->blocks;
  Fetched fetched{.transfer = {.key = call.key, .id = (*pin)->transfer}, .tokens = {}};
  for (const BlockId block : call.blocks.empty() ? held : call.blocks) {
    if (std::ranges::find(held, block) == held.end()) {
      give_up(fetched.transfer);
      return fail(Errc::InvalidRequest,
                  fmt::format("block {} is not held for this hand-off", block));
    }
    const auto content = (*rank)->pool().tokens_of(block);
    fetched.tokens.insert(fetched.tokens.end(), content.begin(), content.end());
  }
  // Behind the prompt there may be tokens that the prefill leg generated.
  if (fetched.tokens.size() > (*pin)->tokens) fetched.tokens.resize((*pin)->tokens);
  return fetched;
}

Result<void> EngineCore::release(const PeerCall& call, std::optional<std::uint64_t> transfer) {
  const auto rank = rank_asked_for(call);
  if (!rank) return fail(rank.error());
  const PinTable& pins = (*rank)->pins();
  if (!pins.contains(call.key) || (transfer && pins.transfer_of(call.key) != *transfer)) {
    ++counters_.unrecognized;
    return fail(Errc::NotFound, "no blocks are held for this hand-off any more");
  }
  (*rank)->give_back((*rank)->pins().release(call.key));
  end_watch(call.key, true);
  return {};
}

void EngineCore::give_up(const Transfer& transfer) {
  EngineRank* rank = holder(transfer.key);
  if (rank == nullptr) return;
  rank->pins().give_up(transfer.key, transfer.id, fetch_again_);
  wake_room(transfer.key);
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
  while (!stopping_ && !can_fetch(key) && !withdrawn_.contains(key)) {
    co_await changed.wait();
  }
}

EngineRank* EngineCore::holder(const std::string& key) {
  const auto found =
      std::ranges::find_if(ranks_, [&](const auto& rank) { return rank->pins().contains(key); });
  return found == ranks_.end() ? nullptr : found->get();
}

// If fetches can be abandoned, a fetch waits for the end of the previous one.
bool EngineCore::can_fetch(const std::string& key) {
  const EngineRank* rank = holder(key);
  return rank != nullptr && (!fetch_again_ || rank->pins().transfer_of(key) == 0);
}

Result<EngineRank*> EngineCore::rank_asked_for(const PeerCall& call) {
  if (const auto met = greet(call); !met) return fail(met.error());
  if (call.engine_id.empty()) {
    EngineRank* rank = holder(call.key);
    return rank != nullptr ? rank : ranks_.front().get();  // which then has no such key either
  }
  return std::ranges::find(ranks_, call.engine_id,
                           [](const auto& rank) { return rank->engine_id(); })
      ->get();
}

void EngineCore::free_pin(const std::string& key) {
  if (EngineRank* rank = holder(key); rank != nullptr) rank->give_back(rank->pins().release(key));
}

void EngineCore::end_watch(const std::string& key, bool taken) {
  const auto found = watches_.find(key);
  if (found == watches_.end()) return;
  const auto [watch, rank] = found->second;
  watch->ended = true;
  watch->taken = taken;
  watch->changed.notify();
  --rank->awaiting_transfer;
  watches_.erase(found);
}

void EngineCore::wake_room(const std::string& key) {
  const auto [begin, end] = room_waiters_.equal_range(key);
  for (auto it = begin; it != end; ++it) it->second->notify();
}

}  // namespace baton::sim
