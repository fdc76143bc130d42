// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/client.h"

#include "etcd/exchange.h"
#include "wire/http_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace baton::etcd {
namespace {

using wire::kOk;
// Bounds the time that one page keeps the thread busy.
constexpr std::int64_t kPageEntries = 500;

// Another endpoint of the cluster may do better.
bool is_of_the_endpoint(Reason reason) {
  return reason == Reason::Unreachable || reason == Reason::Protocol;
}

}  // namespace

Client::Client(boost::asio::io_context& io, net::Deadlines& deadlines, Options options)
    : io_(io), pool_(io, deadlines, pool_options()), options_(std::move(options)) {}

// Zero if the time is over: the next tick of the deadlines then ends the attempt.
std::chrono::milliseconds Client::Try::left() const {
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  return std::max(time, std::chrono::milliseconds(0));
}

void Client::stop() { stopped_.request(Error(Errc::ShuttingDown, "the client was stopped")); }

// ---- one request ----

awaitable<Reply<std::string>> Client::post(Try attempt, std::string_view path,
                                           std::string_view body, std::string_view token,
                                           std::optional<Refusal>* refusal) {
  Exchange exchange(pool_, options_, attempt.server, attempt.scope);
  exchange.set_deadline(attempt.left());
  if (auto sent = co_await exchange.send(path, body, token); !sent) co_return fail(sent.error());
  auto answer = co_await exchange.read_all(options_.message_bytes);
  if (!answer) co_return answer;
  // A stream has sent its status before it knew of the error.
  *refusal = find_refusal(*answer);
  if (*refusal) {
    co_return fail(
        exchange.failure(reason_of(**refusal), fmt::format("{}: {}", path, (*refusal)->message)));
  }
  if (exchange.status() != kOk) {
    co_return fail(
        exchange.failure(Reason::Protocol, foreign_answer(path, exchange.status(), *answer)));
  }
  co_return answer;
}

awaitable<Reply<void>> Client::authenticate(Try attempt, std::string refused) {
  // Another call may have been here while this one waited for its answer.
  if (token_ != refused) co_return Reply<void>();
  token_.clear();
  std::optional<Refusal> refusal;
  const auto answer =
      co_await post(attempt, "/v3/auth/authenticate",
                    encode_authenticate(options_.user, options_.password), "", &refusal);
  // Accepted: the operator has set a user before etcd's users are switched on.
  if (refusal && knows_no_users(*refusal)) co_return Reply<void>();
  if (refusal && reason_of(*refusal) != Reason::Unreachable) {
    co_return fail(Reason::Unauthorized,
                   fmt::format("etcd {}: user `{}` cannot log in: {}", attempt.server.url(),
                               options_.user, refusal->message));
  }
  if (!answer) co_return fail(answer.error());
  auto token = decode_token(*answer);
  if (!token) {
    co_return fail(Reason::Protocol, fmt::format("etcd {}: /v3/auth/authenticate: {}",
                                                 attempt.server.url(), token.error()));
  }
  token_ = std::move(*token);
  co_return Reply<void>();
}

awaitable<Reply<std::string>> Client::ask(Try attempt, std::string_view path,
                                          std::string_view body) {
  const bool has_user = !options_.user.empty();
  if (has_user && token_.empty()) {
    if (auto done = co_await authenticate(attempt, ""); !done) co_return fail(done.error());
  }
  const std::string used = token_;
  std::optional<Refusal> refusal;
  auto answer = co_await post(attempt, path, body, used, &refusal);
  if (!has_user || !refusal || !asks_for_token(*refusal)) co_return answer;
  if (auto done = co_await authenticate(attempt, used); !done) co_return fail(done.error());
  co_return co_await post(attempt, path, body, token_, &refusal);
}

template <class T>
awaitable<Reply<T>> Client::call(std::string_view path, std::string body,
                                 Decoded<T> (*decode)(std::string_view)) {
  const auto until = Clock::now() + options_.timeout;
  const std::size_t count = options_.endpoints.size();
  const std::size_t first = preferred_;
  std::optional<Failure> failure;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = (first + i) % count;
    const Server& server = options_.endpoints[index];
    // Each gets its share of the time that is left, so that a silent one leaves some to the others.
    const auto share = (until - Clock::now()) / static_cast<std::int64_t>(count - i);
    const auto answer = co_await ask({server, Clock::now() + share, stopped_}, path, body);
    Failure problem{};
    if (answer) {
      auto decoded = decode(*answer);
      if (decoded) {
        preferred_ = index;
        co_return std::move(*decoded);
      }
      problem = {.reason = Reason::Protocol,
                 .message = fmt::format("etcd {}: {}: {}", server.url(), path, decoded.error())};
    } else {
      problem = answer.error();
    }
    if (!is_of_the_endpoint(problem.reason)) {
      preferred_ = index;  // a refusal is an answer
      co_return fail(std::move(problem));
    }
    if (failure) {
      failure->message += "; " + problem.message;
    } else {
      failure = std::move(problem);
    }
  }
  // The next call begins with another one.
  preferred_ = (first + 1) % count;
  co_return fail(std::move(*failure));
}

// ---- keys ----

awaitable<Reply<Listing>> Client::list(std::string prefix) {
  Listing listing;
  std::size_t bytes = 0;
  RangeRequest request{
      .keys = prefix_range(prefix), .limit = kPageEntries, .revision = 0, .keys_only = false};
  const auto wrong = [&](Reason reason, std::string_view what) {
    return fail(reason, fmt::format("etcd {}: the keys under `{}` {}",
                                    options_.endpoints[preferred_].url(), prefix, what));
  };
  while (true) {
    auto page = co_await call("/v3/kv/range", encode(request), decode_range);
    if (!page) co_return fail(std::move(page.error()));
    // The pages that follow must show the same moment as the first.
    if (request.revision == 0) request.revision = listing.revision = page->revision;
    for (KeyValue& entry : page->entries) {
      // A server that goes round in circles must not keep us here.
      if (entry.key < request.keys.begin) co_return wrong(Reason::Protocol, "came out of order");
      bytes += entry.key.size() + entry.value.size() + sizeof(KeyValue);
      request.keys.begin = key_after(entry.key);
      listing.entries.push_back(std::move(entry));
    }
    if (bytes > options_.message_bytes) {
      co_return wrong(Reason::Refused,
                      fmt::format("take more than {} bytes", options_.message_bytes));
    }
    if (!page->more) co_return listing;
    if (page->entries.empty()) co_return wrong(Reason::Protocol, "came as an empty page");
  }
}

awaitable<Reply<std::int64_t>> Client::put(std::string key, std::string value, std::int64_t lease) {
  co_return co_await call("/v3/kv/put", encode_put(key, value, lease), decode_put);
}

awaitable<Reply<void>> Client::erase(std::string key) {
  const auto done = co_await call("/v3/kv/deleterange", encode_erase(key), decode_done);
  if (!done) co_return fail(done.error());
  co_return Reply<void>();
}

// ---- leases ----

awaitable<Reply<Lease>> Client::grant(std::chrono::seconds ttl) {
  co_return co_await call("/v3/lease/grant", encode_grant(ttl), decode_grant);
}

awaitable<Reply<std::chrono::seconds>> Client::keep_alive(std::int64_t lease) {
  co_return co_await call("/v3/lease/keepalive", encode_lease(lease), decode_keep_alive);
}

awaitable<Reply<std::chrono::seconds>> Client::time_to_live(std::int64_t lease) {
  co_return co_await call("/v3/lease/timetolive", encode_lease(lease), decode_time_to_live);
}

awaitable<Reply<void>> Client::revoke(std::int64_t lease) {
  const auto done = co_await call("/v3/lease/revoke", encode_lease(lease), decode_done);
  if (!done && done.error().reason != Reason::NotFound) co_return fail(done.error());
  co_return Reply<void>();
}

}  // namespace baton::etcd
