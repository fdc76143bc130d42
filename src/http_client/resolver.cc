// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/resolver.h"

#include "net/await.h"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <unordered_map>
#include <utility>

namespace baton::http_client {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

void system_lookup(asio::io_context& io, const std::string& host, Resolver::Done done) {
  const auto resolver = std::make_shared<tcp::resolver>(io);
  resolver->async_resolve(host, "",
                          [resolver, done = std::move(done)](
                              const error_code& error, const tcp::resolver::results_type& results) {
                            Resolver::Found found{.error = error, .addresses = {}};
                            for (const auto& entry : results)
                              found.addresses.push_back(entry.endpoint().address());
                            done(std::move(found));
                          });
}

}  // namespace

struct Resolver::State {
  using Waits = boost::intrusive::list<Wait, boost::intrusive::constant_time_size<false>>;
  struct Known {
    std::vector<asio::ip::address> addresses;
    Clock::time_point since;
  };

  void finish(const std::string& host, const Found& found, Clock::time_point now) {
    std::erase_if(known, [now](const auto& one) { return now - one.second.since >= kFresh; });
    if (!found.error) known[host] = {.addresses = found.addresses, .since = now};
    const auto asked = in_progress.extract(host);
    if (asked.empty()) return;
    for (Waits& waits = asked.mapped(); !waits.empty();) {
      Wait& wait = waits.front();
      waits.pop_front();
      wait.finish(found);
    }
  }

  std::unordered_map<std::string, Known> known;
  std::unordered_map<std::string, Waits> in_progress;
};

Resolver::Resolver(asio::io_context& io)
    : Resolver([&io](const std::string& host, Done done) {
        system_lookup(io, host, std::move(done));
      }) {}

Resolver::Resolver(Lookup lookup, Now now)
    : lookup_(std::move(lookup)), now_(std::move(now)), state_(std::make_shared<State>()) {}

Resolver::Wait::Wait(asio::io_context& io) : over_(io) {
  over_.expires_at(asio::steady_timer::time_point::max());
}

void Resolver::Wait::abandon() {
  finish({.error = asio::error::operation_aborted, .addresses = {}});
}

void Resolver::Wait::finish(Found found) {
  if (std::exchange(finished_, true)) return;
  found_ = std::move(found);
  if (is_linked()) unlink();
  over_.cancel();
}

asio::awaitable<Resolver::Found> Resolver::resolve(std::string host, Wait& wait) {
  error_code no_address;
  const auto address = asio::ip::make_address(host, no_address);
  if (!no_address) co_return Found{.error = {}, .addresses = {address}};
  const auto known = state_->known.find(host);
  if (known != state_->known.end() && now_() - known->second.since < kFresh)
    co_return Found{.error = {}, .addresses = known->second.addresses};
  if (!wait.finished_) {
    const auto [waits, first] = state_->in_progress.try_emplace(host);
    waits->second.push_back(wait);
    if (first) {
      lookup_(host, [state = state_, now = now_, host](Found found) {
        state->finish(host, found, now());
      });
    }
  }
  if (!wait.finished_) co_await wait.over_.async_wait(net::kAwait);
  co_return std::move(wait.found_);
}

void Resolver::forget(const std::string& host) { state_->known.erase(host); }

}  // namespace baton::http_client
