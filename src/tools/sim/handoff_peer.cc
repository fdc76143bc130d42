// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/handoff_peer.h"

#include "net/await.h"
#include "tools/sim/address.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::experimental::awaitable_operators::operator||;
using nlohmann::json;

constexpr auto kReleaseTimeout = std::chrono::seconds(5);

asio::awaitable<void> sleep(std::chrono::nanoseconds duration) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_after(duration);
  co_await timer.async_wait(net::kAwait);
}

json describe(const HandoffSource& source) {
  json call{{"engine_id", source.engine_id},
            {"key", source.key},
            {"blocks", source.blocks},
            {"wait", source.wait_for_prefill}};
  if (source.sizes) {
    call["tp_size"] = source.sizes->tensor;
    call["pp_size"] = source.sizes->pipeline;
  }
  return call;
}

asio::awaitable<Result<void>> connect(asio::ip::tcp::socket& socket, const HandoffSource& source) {
  asio::ip::tcp::resolver resolver(socket.get_executor());
  auto [resolve_error, endpoints] =
      co_await resolver.async_resolve(source.host, std::to_string(source.port), net::kAwait);
  if (resolve_error) co_return fail(Errc::EngineUnreachable, resolve_error.message());
  auto [error, endpoint] = co_await asio::async_connect(socket, endpoints, net::kAwait);
  if (error) co_return fail(Errc::EngineUnreachable, error.message());
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  co_return Result<void>();
}

// A GET without a body, a POST with one.
asio::awaitable<Result<json>> call(asio::ip::tcp::socket& socket, const HandoffSource& source,
                                   std::string_view path, std::string body) {
  const http::verb method = body.empty() ? http::verb::get : http::verb::post;
  http::request<http::string_body> request(method, {path.data(), path.size()}, 11);
  request.set(http::field::host, source.host);
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = std::move(body);
  request.prepare_payload();
  auto [write_error, written] = co_await http::async_write(socket, request, net::kAwait);
  if (write_error) co_return fail(Errc::StreamBroken, write_error.message());

  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(256U << 20U);
  auto [read_error, read] = co_await http::async_read(socket, buffer, parser, net::kAwait);
  if (read_error) co_return fail(Errc::StreamBroken, read_error.message());
  json answer = json::parse(parser.get().body(), nullptr, false);
  if (parser.get().result() != http::status::ok) {
    co_return fail(Errc::EngineFailed,
                   answer.is_object() ? answer.value("reason", "refused") : std::string("refused"));
  }
  co_return answer;
}

// Mooncake: the bootstrap server knows where the engine named in the request has its blocks.
asio::awaitable<Result<void>> ask_bootstrap(HandoffSource& source) {
  asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
  if (const auto connected = co_await connect(socket, source); !connected) {
    co_return fail(connected.error());
  }
  const Result<json> ranks = co_await call(socket, source, "/query", {});
  if (!ranks) co_return fail(ranks.error());
  for (const json& rank : *ranks) {
    if (!rank.is_object() || rank.value("engine_id", json()) != source.engine_id) continue;
    const json address = rank.value("/worker_addr/0/0"_json_pointer, json());
    const auto worker = address.is_string()
                            ? parse_address("", address.get_ref<const std::string&>())
                            : std::nullopt;
    if (!worker) co_return fail(Errc::EngineProtocol, "the bootstrap server names no worker");
    source.host = worker->host;
    source.port = worker->port;
    co_return Result<void>();
  }
  co_return fail(Errc::EngineFailed, "the bootstrap server does not know this engine");
}

asio::awaitable<Result<std::vector<TokenId>>> fetch_and_release(const Options& options,
                                                                HandoffSource source) {
  if (source.at_bootstrap) {
    if (const auto found = co_await ask_bootstrap(source); !found) co_return fail(found.error());
  }
  asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
  if (const auto connected = co_await connect(socket, source); !connected) {
    co_return fail(connected.error());
  }
  const Result<json> answer =
      co_await call(socket, source, "/sim/kv/fetch", describe(source).dump());
  if (!answer) co_return fail(answer.error());
  const json& list = answer->is_object() ? answer->value("tokens", json()) : json();
  std::vector<TokenId> tokens =
      list.is_array() ? list.get<std::vector<TokenId>>() : std::vector<TokenId>();
  if (tokens.empty()) co_return fail(Errc::EngineProtocol, "the peer sent no tokens");

  const double blocks =
      static_cast<double>((tokens.size() + options.block_size - 1) / options.block_size);
  const double ms = options.transfer_ms + options.block_transfer_ms() * blocks;
  if (ms > 0) co_await sleep(from_ms(ms));
  if (const auto released =
          co_await call(socket, source, "/sim/kv/release", describe(source).dump());
      !released) {
    co_return fail(released.error());
  }
  co_return tokens;
}

asio::awaitable<void> connect_and_release(const HandoffSource& source) {
  asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
  if (const auto connected = co_await connect(socket, source); !connected) co_return;
  co_await call(socket, source, "/sim/kv/release", describe(source).dump());
}

}  // namespace

asio::awaitable<Result<std::vector<TokenId>>> fetch_prompt(const Options& options,
                                                           HandoffSource source) {
  auto outcome = co_await (fetch_and_release(options, source) || sleep(from_ms(options.lease_ms)));
  if (auto* fetched = std::get_if<0>(&outcome)) co_return std::move(*fetched);
  co_return fail(Errc::EngineTimeout, "the prefill worker did not show the blocks in time");
}

asio::awaitable<void> release_prompt(HandoffSource source) {
  co_await (connect_and_release(source) || sleep(kReleaseTimeout));
}

}  // namespace baton::sim
