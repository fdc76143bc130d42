// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/tools/sim/loopback.h"

#include "net/await.h"
#include "tools/sim/answer.h"
#include "tools/sim/prompt.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <chrono>
#include <exception>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using nlohmann::json;

constexpr auto kTimeout = std::chrono::seconds(20);

json chat_body(const json& fields) {
  json body{{"model", "demo"},
            {"messages", {{{"role", "user"}, {"content", "one two three four five six"}}}}};
  if (fields.is_object()) body.update(fields);
  return body;
}

asio::awaitable<asio::ip::tcp::socket> send(
    asio::io_context& io, std::uint16_t port, std::string method, std::string path, json body,
    std::vector<std::pair<std::string, std::string>> headers = {}) {
  asio::ip::tcp::socket socket(io);
  co_await socket.async_connect({asio::ip::address_v4::loopback(), port}, net::kAwait);
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(method);
  request.target(path);
  request.set(http::field::host, "localhost");
  if (!body.is_null()) request.set(http::field::content_type, "application/json");
  for (const auto& [name, value] : headers) request.set(name, value);
  if (!body.is_null()) request.body() = body.dump();
  request.prepare_payload();
  co_await http::async_write(socket, request, net::kAwait);
  co_return socket;
}

}  // namespace

Options Loopback::worker(model::Engine engine, model::Role role) {
  Options options;
  options.engine = engine;
  options.role = role;
  options.decode_ms = 0;
  options.transfer_ms = 0;
  options.prefill_tokens_per_second = 0;
  options.block_size = 4;
  return options;
}

Server& Loopback::start(Options options, std::unique_ptr<const TokenSource> tokens) {
  servers_.push_back(std::make_unique<Server>(io_, std::move(options), std::move(tokens)));
  const auto started = servers_.back()->start();
  EXPECT_TRUE(started);
  return *servers_.back();
}

void Loopback::run(std::function<Task()> scenario) {
  asio::co_spawn(io_, std::move(scenario), [this](std::exception_ptr failure) {
    EXPECT_FALSE(failure) << "the scenario threw";
    for (const auto& server : servers_) server->stop();
  });
  io_.run_for(3 * kTimeout);
  EXPECT_TRUE(io_.stopped()) << "something is still going on";
}

asio::awaitable<Reply> Loopback::call(std::uint16_t port, std::string method, std::string path,
                                      json body, HeaderList headers) {
  asio::ip::tcp::socket socket = co_await send(io_, port, std::move(method), std::move(path),
                                               std::move(body), std::move(headers));
  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  auto [error, size] = co_await http::async_read(socket, buffer, response, net::kAwait);
  co_return Reply{error ? 0 : static_cast<int>(response.result_int()), response.body()};
}

asio::awaitable<Reply> Loopback::chat(const Server& server, json fields, HeaderList headers) {
  return call(server.port(), "POST", "/v1/chat/completions", chat_body(fields), std::move(headers));
}

asio::awaitable<asio::ip::tcp::socket> Loopback::open_chat(const Server& server, json fields,
                                                           HeaderList headers) {
  return send(io_, server.port(), "POST", "/v1/chat/completions", chat_body(fields),
              std::move(headers));
}

asio::awaitable<json> Loopback::state(const Server& server) {
  const std::uint16_t port = server.options().has_control ? server.control_port() : server.port();
  const Reply reply = co_await call(port, "GET", "/sim/state");
  co_return reply.json();
}

Loopback::Task Loopback::until(const Server& server, std::function<bool(const json&)> expected) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  json now = co_await state(server);
  while (!expected(now) && std::chrono::steady_clock::now() < deadline) {
    now = co_await state(server);
  }
  EXPECT_TRUE(expected(now)) << now;
}

std::string Loopback::expected_text(std::size_t words) {
  const std::uint64_t hash = hash_prompt(*chat_prompt(chat_body(json::object())));
  const std::size_t count = std::min<std::size_t>(words, natural_length(hash, 16, 64));
  std::string text = output_word(hash, 0);
  for (std::size_t i = 1; i < count; ++i) text += " " + output_word(hash, i);
  return text;
}

std::string Loopback::text_of(const Reply& reply) {
  if (!reply.body.starts_with("data: ")) {
    const json body = reply.json();
    return body.is_object() && body.contains("choices")
               ? body["choices"][0]["message"]["content"].get<std::string>()
               : "no answer: " + reply.body;
  }
  std::string text;
  for (std::size_t at = 0; at < reply.body.size();) {
    const std::size_t end = reply.body.find("\n\n", at);
    const json event = json::parse(reply.body.substr(at + 6, end - at - 6), nullptr, false);
    at = end + 2;
    if (!event.is_object() || !event.contains("choices") || event["choices"].empty()) continue;
    const json content = event["choices"][0]["delta"].value("content", json());
    if (content.is_string()) text += content.get<std::string>();
  }
  return text;
}

}  // namespace baton::sim
