// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How the simulated server tells of its KV blocks.
#include "net/await.h"
#include "tools/sim/introspection.h"
#include "tools/sim/kv_sockets.h"
#include "tools/sim/server.h"

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
using model::Engine;

// How long a replay waits at most while nothing is published.
constexpr auto kFeedTick = std::chrono::milliseconds(10);
constexpr std::uint32_t kDefaultBuffer = 10000;

void replace(std::string& text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), by);
}

}  // namespace

Result<void> Server::open_feeds() {
  if (!options_.tells_of_blocks()) return {};
  KvOptions& kv = options_.kv;
  RankSockets feeds;
  RankSockets replays;
  if (!kv.events.empty()) {
    auto opened =
        open_rank_sockets(zmq_, zmq::socket_type::pub, kv.events, options_.dp_size, kv.connect);
    if (!opened) return fail(opened.error());
    feeds = std::move(*opened);
    kv.events = feeds.endpoint;
  }
  if (!kv.replay.empty()) {
    auto opened = open_rank_sockets(zmq_, zmq::socket_type::router, kv.replay, options_.dp_size);
    if (!opened) return fail(opened.error());
    replays = std::move(*opened);
    kv.replay = replays.endpoint;
  }
  kv.topic = filled_topic();
  const KvChannel::Settings settings{.topic = kv.topic,
                                     .first_sequence = kv.first_sequence,
                                     .buffer = kv.buffer.value_or(kDefaultBuffer),
                                     .replay_frames = replay_frames(options_)};
  for (const auto& rank : engine_.ranks()) {
    std::optional<KvChannel> channel;
    if (!feeds.sockets.empty()) {
      std::optional<zmq::socket_t> replay;
      if (!replays.sockets.empty()) replay = std::move(replays.sockets[rank->index()]);
      channel.emplace(std::move(feeds.sockets[rank->index()]), std::move(replay), settings);
    }
    rank->report_through(std::move(channel));
  }
  return {};
}

std::string Server::filled_topic() const {
  std::string topic = options_.kv.topic;
  replace(topic, "{host}", options_.host);
  replace(topic, "{port}", std::to_string(options_.port));
  replace(topic, "{model}", options_.model);
  return topic;
}

asio::awaitable<void> Server::serve_feeds() {
  asio::steady_timer timer(io_);
  while (!stopping_) {
    for (const auto& rank : engine_.ranks()) rank->reporter()->serve();
    timer.expires_after(kFeedTick);
    co_await timer.async_wait(net::kAwait);
  }
}

// Serves the paths that empty the cache or fetch TensorRT-LLM's events; false for other paths.
asio::awaitable<bool> Server::answer_cache(Connection& connection, const HttpRequest& request) {
  const std::string& path = request.path;
  const bool post = request.method == "POST";
  if (post && path == "/kv_cache_events" && options_.engine == Engine::Trtllm) {
    auto events = nlohmann::ordered_json::array();
    for (const auto& rank : engine_.ranks()) {
      if (rank->reporter() != nullptr) rank->reporter()->drain(events);
    }
    co_await connection.send_json(200, events.dump());
    co_return true;
  }
  const bool vllm = post && path == "/reset_prefix_cache" && options_.engine == Engine::Vllm;
  const bool sglang = (post || request.method == "GET") && path == "/flush_cache" &&
                      options_.engine == Engine::Sglang;
  if (!vllm && !sglang) co_return false;
  bool done = true;
  for (const auto& rank : engine_.ranks()) done = rank->reset_cache() && done;
  // vLLM says nothing of what it could not do.
  if (vllm) {
    co_await connection.send(200, {}, {});
  } else {
    constexpr std::string_view kFlushed =
        "Cache flushed.\nPlease check backend logs for more details. (When there are running or "
        "waiting requests, the operation will not be performed.)\n";
    co_await connection.send(done ? 200 : 400, {}, done ? kFlushed : "Flush cache failed.\n");
  }
  co_return true;
}

}  // namespace baton::sim
