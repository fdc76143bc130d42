// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/admin_client.h"

#include "http_client/exchange.h"
#include "http_client/request_head.h"
#include "net/deadlines.h"
#include "net/task_group.h"

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

namespace baton::cli {
namespace {

using boost::asio::awaitable;

http_client::PoolOptions admin_pool_options() {
  return {
      .connect_timeout = std::chrono::seconds(3), .idle_per_worker = 0, .header_bytes = 64 * 1024};
}
constexpr http_client::ExchangeTimeouts kTimeouts{.first_byte = std::chrono::seconds(10),
                                                  .idle = std::chrono::seconds(10)};
constexpr std::size_t kLargestAnswer = 64 * 1024 * 1024;

// The error of an exchange, reworded for a router instead of a worker.
Error explain(const Error& error, const model::Endpoint& router) {
  const std::string url = "http://" + router.to_string();
  if (error.code() == Errc::EngineUnreachable) {
    return {Errc::EngineUnreachable,
            fmt::format("no answer at {}: is the router running, and is that its admin address? "
                        "Say where it is with --admin URL or BATON_ADMIN",
                        url)};
  }
  if (error.code() == Errc::EngineTimeout)
    return {Errc::EngineTimeout, fmt::format("the router at {} took too long to answer", url)};
  return {error.code(),
          fmt::format("{} does not answer as a router's admin address does; say where "
                      "that is with --admin URL or BATON_ADMIN",
                      url)};
}

struct Question {
  std::string head;
  std::string body;
};

awaitable<void> exchange_with(http_client::UpstreamPool& pool, const model::Endpoint& router,
                              Question question, Result<AdminClient::Answer>& answer) {
  http_client::Exchange exchange(pool, {model::WorkerId{}, router}, kTimeouts);
  std::vector<std::string_view> body;
  if (!question.body.empty()) body.emplace_back(question.body);
  if (auto sent = co_await exchange.send(question.head, body); !sent) {
    answer = fail(explain(sent.error(), router));
    co_return;
  }
  const int status = exchange.head().status;
  auto read = co_await exchange.read_all(kLargestAnswer);
  if (read) {
    answer = AdminClient::Answer{status, *std::move(read)};
  } else {
    answer = fail(explain(read.error(), router));
  }
}

}  // namespace

AdminClient::AdminClient(model::Endpoint router, std::string key)
    : router_(std::move(router)), key_(std::move(key)) {}

Result<AdminClient::Answer> AdminClient::ask(std::string_view method, std::string_view path,
                                             std::string_view body) {
  wire::Headers headers;
  headers.add("Connection", "close");
  if (!key_.empty()) headers.add("Authorization", "Bearer " + key_);
  Question question{
      http_client::request_head(method, path, router_.to_string(), headers, body.size()),
      std::string(body)};

  Result<Answer> answer;
  boost::asio::io_context io(1);
  net::Deadlines deadlines(io);
  http_client::UpstreamPool pool(io, deadlines, admin_pool_options());
  net::TaskGroup tasks(io, [](std::exception_ptr thrown) { std::rethrow_exception(thrown); });
  // It ends before this function does.
  // Outlive the task: router, answer
  tasks.spawn(exchange_with(pool, router_, std::move(question), answer));
  while (tasks.running() > 0) io.run_one();
  return answer;
}

}  // namespace baton::cli
