// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The routes of the simulated server.
#include "tools/sim/dialect.h"
#include "tools/sim/health_request.h"
#include "tools/sim/introspection.h"
#include "tools/sim/server.h"
#include "tools/sim/sglang_body.h"
#include "tools/sim/sglang_info.h"
#include "tools/sim/token_routes.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <utility>
#include <variant>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
using asio::experimental::awaitable_operators::operator||;
using model::Engine;
using nlohmann::json;

constexpr model::Version kWithoutOldLoads{0, 5, 23};
constexpr std::string_view kModels = "/v1/models/";
constexpr std::string_view kNotFound = R"({"detail":"Not Found"})";
constexpr std::string_view kNotAllowed = R"({"detail":"Method Not Allowed"})";

std::optional<PeerCall> read_peer_call(const std::string& body) {
  const json call = json::parse(body, nullptr, false);
  if (!call.is_object() || !call.contains("key") || !call["key"].is_string()) return std::nullopt;
  PeerCall out;
  out.key = call["key"].get<std::string>();
  if (call.contains("engine_id") && call["engine_id"].is_string()) {
    out.engine_id = call["engine_id"].get<std::string>();
  }
  for (const json& block : call.value("blocks", json::array())) {
    if (block.is_number_unsigned()) out.blocks.push_back(block.get<BlockId>());
  }
  out.wait = call.value("wait", json(false)) == true;
  if (call.contains("tp_size") && call["tp_size"].is_number_unsigned() &&
      call.contains("pp_size") && call["pp_size"].is_number_unsigned()) {
    out.sizes =
        ParallelSizes{call["tp_size"].get<std::uint32_t>(), call["pp_size"].get<std::uint32_t>()};
  }
  return out;
}

std::string refusal(std::string_view reason) { return json{{"reason", reason}}.dump(); }

// SGLang guards all but what watchers need, the others only /v1.
bool has_key(const Options& options, const HttpRequest& request) {
  const std::string& path = request.path;
  const bool open =
      options.engine == Engine::Sglang
          ? path.starts_with("/health") || path.starts_with("/metrics") || path.starts_with("/sim/")
          : !path.starts_with("/v1");
  return options.api_key.empty() || open ||
         request.header("authorization") == "Bearer " + options.api_key;
}

bool is_health(Engine engine, std::string_view path) {
  return path == "/health" || path == "/ping" ||
         (engine != Engine::Vllm && path == "/health_generate");
}

// True if the health check runs a request inside the engine.
bool health_generates(Engine engine, std::string_view path) {
  return path == "/health_generate" || (engine == Engine::Sglang && path == "/health");
}

}  // namespace

asio::awaitable<void> Server::answer(Connection& connection, const HttpRequest& request,
                                     Door door) {
  if (door == Door::Bootstrap && co_await answer_bootstrap(connection, request)) co_return;
  if (door == Door::Engine && co_await answer_engine(connection, request)) co_return;
  if (co_await answer_simulator(connection, request)) co_return;
  co_await connection.send_json(404, kNotFound);
}

asio::awaitable<bool> Server::answer_bootstrap(Connection& connection, const HttpRequest& request) {
  const bool mooncake = options_.mode() == model::HandoffMode::Mooncake;
  if (mooncake && request.path == "/query") {
    co_await connection.send_json(200, bootstrap_query_body(options_, engine_));
  } else if (!mooncake && request.path == "/route") {
    co_await connection.send_json(200, bootstrap_route_body(options_));
  } else if (!mooncake && request.path == "/health") {
    co_await connection.send(200, "text/plain", "OK");
  } else {
    co_return false;
  }
  co_return true;
}

// The engine's own endpoints; false when the path is none of them.
asio::awaitable<bool> Server::answer_engine(Connection& connection, const HttpRequest& request) {
  const std::string& path = request.path;
  const bool chat = path == "/v1/chat/completions";
  const Engine engine = options_.engine;
  if (!has_key(options_, request)) {
    Error error(Errc::Unauthorized, "Unauthorized");
    co_await connection.send_json(401, error_body(engine, error));
    co_return true;
  }
  if (chat || path == "/v1/completions") {
    if (request.method != "POST") {
      co_await connection.send_json(405, kNotAllowed, {{"allow", "POST"}});
      co_return true;
    }
    Generation generation(*services_, connection, chat ? Api::Chat : Api::Completions);
    co_await generation.serve(request);
    co_return true;
  }
  if (request.method == "POST" && co_await answer_tokens(connection, request)) co_return true;
  if (co_await answer_cache(connection, request)) co_return true;
  if (engine == Engine::Sglang && co_await answer_sglang(connection, request)) co_return true;
  const bool reading = request.method == "GET" || request.method == "HEAD";
  if (reading && is_health(engine, path)) {
    co_await answer_health(connection, request);
    co_return true;
  }
  const auto connections = static_cast<std::uint64_t>(connections_.size());
  std::optional<std::string> body;
  std::string_view type = "application/json";
  if (path == "/v1/models") {
    body = models_body(options_);
  } else if (is_health(engine, path)) {
    body.emplace();
  } else if (path == "/version" && engine != Engine::Sglang) {
    body = json{{"version", options_.told_version()}}.dump();
  } else if ((path == "/server_info" && engine != Engine::Vllm) ||
             (path == "/get_server_info" && engine == Engine::Sglang)) {
    body = server_info_body(options_, options_.bootstrap_port);
  } else if (path == "/metrics" && engine == Engine::Trtllm) {
    body = iteration_stats_body(engine_, connections);
  } else if (path == "/metrics" || (engine == Engine::Trtllm && path == "/prometheus/metrics")) {
    body = metrics_text(options_, engine_, connections);
    type = engine == Engine::Vllm     ? "text/plain; version=1.0.0; charset=utf-8"
           : engine == Engine::Sglang ? "text/plain; version=0.0.4; charset=utf-8"
                                      : "text/plain; version=0.0.4";
  } else if (path == "/load" && engine == Engine::Vllm) {
    // Like vLLM with --enable-server-load-tracking; otherwise it is always 0.
    std::uint64_t open = 0;
    for (const auto& rank : engine_.ranks()) open += rank->requests;
    body = json{{"server_load", open}}.dump();
  }
  if (!body) co_return false;
  if (reading) {
    co_await connection.send(200, type, *body);
  } else {
    co_await connection.send_json(405, kNotAllowed, {{"allow", "GET"}});
  }
  co_return true;
}

asio::awaitable<bool> Server::answer_sglang(Connection& connection, const HttpRequest& request) {
  const std::string& path = request.path;
  if (path == "/abort_request") {
    co_await answer_abort(connection, request);
    co_return true;
  }
  if (path == "/generate" && request.method == "POST" && !tokens_->can_be_known()) {
    const auto refused = generate_refusal(request.body);
    if (refused) co_await connection.send_json(400, *refused);
    co_return refused.has_value();
  }
  if (request.method != "GET") co_return false;
  if (path == "/") {
    co_await connection.send_json(200, R"("SGLang is running")");
  } else if (path == "/ready") {
    co_await connection.send(200, {}, {});
  } else if (path.starts_with(kModels)) {
    const auto card = sglang_model_body(options_, std::string_view(path).substr(kModels.size()));
    co_await connection.send_json(card ? 200 : 404, card ? *card : card.error().message());
  } else if (path == "/model_info" || path == "/get_model_info") {
    co_await connection.send_json(200, model_info_body(options_));
  } else if (path == "/get_load" && options_.release() < kWithoutOldLoads) {
    co_await connection.send_json(200, old_loads_body(options_, engine_));
  } else if (path == "/v1/loads") {
    const auto body = loads_body(options_, engine_, request.query);
    if (body) {
      co_await connection.send_json(200, *body);
    } else if (is_stumble(body.error())) {
      co_await connection.send_failure();
    } else {
      co_await connection.send_json(400, error_body(options_.engine, body.error()));
    }
  } else {
    co_return false;
  }
  co_return true;
}

asio::awaitable<void> Server::answer_abort(Connection& connection, const HttpRequest& request) {
  if (request.method != "POST") {
    co_await connection.send_json(405, kNotAllowed, {{"allow", "POST"}});
    co_return;
  }
  if (const auto readable = check_sglang_abort(request.body); !readable) {
    co_await connection.send_json(400, error_body(options_.engine, readable.error()));
    co_return;
  }
  const json rid = json::parse(request.body, nullptr, false).value("rid", json());
  if (rid.is_string()) names_.abort(rid.get<std::string>());
  co_await connection.send(200, {}, {});
}

asio::awaitable<bool> Server::answer_tokens(Connection& connection, const HttpRequest& request) {
  auto body = token_answer(options_, *tokens_, request.path, request.body);
  if (!body) co_return false;
  if (auto type = check_content_type(options_.engine, request.header("content-type")); !type)
    *body = fail(std::move(type.error()));
  co_await connection.send_json(
      *body ? 200 : body->error().http_status(),
      *body ? std::string_view(**body) : error_body(options_.engine, body->error()));
  co_return true;
}

asio::awaitable<void> Server::answer_health(Connection& connection, const HttpRequest& request) {
  const auto fault = faults_.strike_health(std::chrono::steady_clock::now());
  if (fault && fault->kind == FaultKind::Reset) {
    connection.reset();
  } else if (fault && fault->kind == FaultKind::Hang) {
    co_await connection.until_closed();
  } else if (fault && fault->kind == FaultKind::Status) {
    co_await connection.send(fault->status, {}, {});
  } else {
    if (fault) {
      asio::steady_timer timer(
          io_, std::chrono::microseconds(static_cast<std::int64_t>(fault->delay_ms * 1000)));
      co_await (connection.until_closed() || timer.async_wait(asio::use_awaitable));
    }
    // When the caller has gone first, the answer fails to be sent.
    const auto outcome = co_await (healthy(request) || connection.until_closed());
    const bool well = outcome.index() == 0 && std::get<0>(outcome);
    co_await connection.send(well ? 200 : 503, {}, {});
  }
}

asio::awaitable<bool> Server::healthy(const HttpRequest& request) {
  if (!health_generates(options_.engine, request.path)) co_return true;
  HealthRequest token(engine_);
  co_return co_await token.seen(options_.health_poll_ms);
}

asio::awaitable<bool> Server::answer_simulator(Connection& connection, const HttpRequest& request) {
  const std::string& path = request.path;
  if (path == "/sim/state") {
    co_await connection.send_json(200, state_of(engine_, connections_.size()).dump());
  } else if (path == "/sim/requests") {
    co_await connection.send_json(200, log_.list().dump());
  } else if (path == "/sim/blocks") {
    co_await connection.send_json(200, blocks_of(engine_).dump());
  } else if (path == "/sim/faults") {
    co_await answer_faults(connection, request);
  } else if (path == "/sim/kv/fetch" && request.method == "POST") {
    co_await answer_fetch(connection, request);
  } else if (path == "/sim/kv/release" && request.method == "POST") {
    co_await answer_release(connection, request);
  } else {
    co_return false;
  }
  co_return true;
}

asio::awaitable<void> Server::answer_faults(Connection& connection, const HttpRequest& request) {
  const auto now = std::chrono::steady_clock::now();
  if (request.method == "POST") {
    const Result<Fault> fault = read_fault(json::parse(request.body, nullptr, false));
    if (!fault) {
      co_await connection.send_json(400, error_body(options_.engine, fault.error()));
      co_return;
    }
    if (fault->kind == FaultKind::KvRestart) {
      for (const auto& rank : engine_.ranks()) {
        if (rank->reporter() != nullptr) rank->reporter()->restart();
      }
    } else {
      faults_.add(*fault, now);
    }
  } else if (request.method == "DELETE") {
    faults_.clear();
    co_await until_listening();
  }
  // The doors are shut when the answer is out, also if the request came through one of them.
  const bool shut = close_if_told(connection);
  co_await connection.send_json(200, faults_.list(now).dump());
  if (shut && connections_.contains(&connection)) connection.reset();
}

asio::awaitable<void> Server::answer_fetch(Connection& connection, const HttpRequest& request) {
  const std::optional<PeerCall> call = read_peer_call(request.body);
  if (!call) {
    co_await connection.send_json(400, refusal("not a hand-off"));
    co_return;
  }
  if (const auto met = engine_.greet(*call); !met) {
    co_await connection.send_json(409, refusal(met.error().message()));
    co_return;
  }
  if (call->wait) {
    const auto outcome = co_await (connection.until_closed() || engine_.until_kept(call->key));
    if (outcome.index() == 0) co_return;
  }
  give_up_transfer(connection);  // a peer has one under way on each connection
  auto fetched = engine_.fetch(*call);
  if (!fetched) {
    co_await connection.send_json(409, refusal(fetched.error().message()));
    co_return;
  }
  transfers_.insert_or_assign(&connection, std::move(fetched->transfer));
  co_await connection.send_json(200, json{{"tokens", fetched->tokens}}.dump());
}

asio::awaitable<void> Server::answer_release(Connection& connection, const HttpRequest& request) {
  const std::optional<PeerCall> call = read_peer_call(request.body);
  if (!call) {
    co_await connection.send_json(400, refusal("not a hand-off"));
    co_return;
  }
  std::optional<std::uint64_t> transfer;
  if (const auto entry = transfers_.extract(&connection)) transfer = entry.mapped().id;
  if (const auto released = engine_.release(*call, transfer); !released) {
    co_await connection.send_json(409, refusal(released.error().message()));
    co_return;
  }
  co_await connection.send_json(200, "{}");
}

}  // namespace baton::sim
