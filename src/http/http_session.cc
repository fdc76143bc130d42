// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/http_session.h"

#include "pipeline/error_body.h"

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace baton::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kHeadBuffer = 4 * 1024;
constexpr std::size_t kBodyBuffer = 64 * 1024;
// A body may take timeouts.client_body plus a second for each of these: slow networks pass, a
// trickle does not.
constexpr std::size_t kSlowestBodyRate = 64 * 1024;
constexpr std::size_t kLongestRequestId = 128;
// Bytes drained after a refusal, so that the client gets to read it.
constexpr std::size_t kMostSwallowed = 8 * 1024 * 1024;
constexpr milliseconds kSwallowTime{1'000};
// For requests sent before their client could know that the process is to end.
constexpr milliseconds kLastChance{1'000};

milliseconds until(steady_clock::time_point deadline) {
  return std::max(milliseconds(0),
                  std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
}

// Without a value: it is read into.
void make_room(std::string& buffer, std::size_t size) {
  buffer.resize_and_overwrite(size, [](char*, std::size_t all) { return all; });
}

// Sixteen digits each.
std::string hexadecimal(std::uint64_t high, std::uint64_t low) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::size_t kEach = 16;
  std::string text(2 * kEach, '0');
  for (std::size_t i = 0; i < kEach; ++i) {
    text[kEach - 1 - i] = kDigits[(high >> (4 * i)) & 0xf];
    text[2 * kEach - 1 - i] = kDigits[(low >> (4 * i)) & 0xf];
  }
  return text;
}

bool is_safe_id(std::string_view id) {
  return !id.empty() && id.size() <= kLongestRequestId && std::ranges::all_of(id, [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\\';
  });
}

// Whether a Host names this machine independently of name servers.
bool is_own_name(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool bracketed = host.starts_with('[');
  if (colon != std::string_view::npos && (!bracketed || host[colon - 1] == ']'))
    host = host.substr(0, colon);
  if (bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  boost::system::error_code error;
  boost::asio::ip::make_address(std::string(host), error);
  constexpr std::string_view kLocalhost = "localhost";
  return !error || wire::equal_ignoring_case(host, kLocalhost);
}

telemetry::Counter& accept_pauses(telemetry::Registry& registry, Limit limit) {
  return registry.counter("baton_accept_pauses_total",
                          "How often a listener began to leave new connections in the kernel's "
                          "backlog, by what there was too little of.",
                          {{"limit", std::string(to_string(limit))}});
}

}  // namespace

HttpMetrics::HttpMetrics(telemetry::Registry& registry)
    : refused{},
      pauses_for_connections(accept_pauses(registry, Limit::Connections)),
      pauses_for_descriptors(accept_pauses(registry, Limit::Descriptors)),
      connections(registry.gauge("baton_client_connections", "Client connections open now.")),
      limits(registry) {
  for (const ErrorInfo& info : error_table()) {
    refused[static_cast<std::size_t>(info.code)] = &registry.counter(
        "baton_http_refused_total", "Requests refused before a model was looked at, by error.",
        {{"kind", std::string(info.label)}});
  }
}

awaitable<void> HttpSession::run() {
  const net::IoResult shaken =
      co_await connection_.handshake(at_most(context_.timeouts.client_header));
  bool more = shaken.status == net::IoStatus::Ok;
  while (more) {
    // Apart from dispatch(), so that memory for reading is freed before a long answer begins.
    const Next next = co_await read_request();
    more = next.route ? co_await dispatch(*next.route) : next.keep_alive;
    counted_.reset();
    memory_.shrink(0);
  }
  co_await connection_.close();
}

void HttpSession::finish() {
  closing_ = true;
  if (cancellation_) return;  // a request is being answered
  last_chance_ = steady_clock::now() + kLastChance;
  const bool between_requests = !fresh_ && parser_ && parser_->idle();
  // Not where the kernel has the next request already.
  if (between_requests && !connection_.stale()) {
    connection_.abort();
  } else {
    connection_.hasten(kLastChance);
  }
}

void HttpSession::stop(const Error& reason) {
  closing_ = true;
  if (cancellation_) {
    cancellation_->request(reason);
  } else {
    connection_.abort();
  }
}

std::optional<HttpSession::Expendable> HttpSession::expendable() const {
  if (closing_ || cancellation_) return std::nullopt;
  return Expendable{.arriving = !parser_ || !parser_->idle(), .since = received_};
}

void HttpSession::give_way() {
  closing_ = true;
  last_chance_ = steady_clock::now();
  connection_.abort();
}

awaitable<HttpSession::Next> HttpSession::read_request() {
  parser_.emplace(http_limits());
  if (auto problem = co_await read_head()) {
    if (problem->code() == Errc::ClientGone) co_return Next{};
    request_id_.clear();
    co_return co_await refuse(std::move(*problem));
  }
  fresh_ = false;
  received_ = steady_clock::now();
  request_id_ = choose_request_id();
  // Decided by the head alone: a client need not upload megabytes to be refused.
  auto route = admit();
  if (!route) co_return co_await refuse(std::move(route.error()));
  if (parser_->head().expect_continue && ahead_.empty()) {
    static constexpr std::array<std::string_view, 1> kContinue{"HTTP/1.1 100 Continue\r\n\r\n"};
    co_await connection_.write(kContinue, context_.timeouts.client_write);
  }
  if (auto problem = co_await read_body()) {
    if (problem->code() == Errc::ClientGone) co_return Next{};
    co_return co_await refuse(std::move(*problem));
  }
  if (*route) co_return Next{*route, true};
  co_return co_await tell_options();
}

Result<const Route*> HttpSession::admit() {
  const wire::RequestHead& head = parser_->head();
  auto route = context_.routes.find(head.method, head.path());
  // A client without access does not learn which routes exist.
  const Access access = route ? (*route)->access : Access::Key;
  const auto key = admit(access);
  if (!key) return fail(key.error());
  client_ = ApiKeys::name_of(*key);
  const bool options =
      head.method == "OPTIONS" &&
      (head.target == "*" || !context_.routes.allowed_methods(head.path()).empty());
  if (options) return nullptr;
  if (!route) return route;
  if (peer_.only_open && access != Access::Open) {
    return fail(Error(Errc::TooManyConnections,
                      "there are too many connections, all of them busy: only what everybody may "
                      "ask is answered now")
                    .with_retry_after(std::chrono::seconds(1))
                    .with_limit(Limit::Connections));
  }
  if (head.headers.find("expect") && !head.expect_continue) {
    return fail(Errc::ExpectationFailed, "the only expectation understood is 100-continue");
  }
  if (context_.memory && !context_.memory->has_room(head.content_length.value_or(0)))
    return fail(no_memory_for("the request's body"));
  if (context_.clients && access == Access::Key) {
    const ClientId client = *key == 0 ? peer_.client : ClientId::of_key(*key);
    auto counted = context_.clients->admit(client, received_);
    if (!counted) return fail(std::move(counted.error()));
    counted_ = *std::move(counted);
  }
  return route;
}

Result<std::size_t> HttpSession::admit(Access access) const {
  const wire::Headers& headers = parser_->head().headers;
  if (access == Access::Open) return 0;
  if (access == Access::Key || !context_.keys.empty()) return context_.keys.admit(headers);
  if (!peer_.loopback) {
    return fail(Errc::Forbidden,
                "without keys this is answered only to callers on the router's own machine: set "
                "admin_keys_file in the configuration, and send a key of it as \"Authorization: "
                "Bearer KEY\"");
  }
  // A page from anywhere can make a browser on this machine call, but cannot keep it from saying so.
  if (headers.find("origin")) {
    return fail(Errc::Forbidden,
                "without keys this is not answered to web pages: set admin_keys_file in the "
                "configuration, and send a key of it as \"Authorization: Bearer KEY\"");
  }
  // A page whose name was made to point here (DNS rebinding) gives no origin, but its Host is that
  // name.
  if (const auto host = headers.find("host"); host && !is_own_name(*host)) {
    return fail(Errc::Forbidden,
                "without keys this is answered only where it is called by an IP address or as "
                "localhost: do so, or set admin_keys_file in the configuration, and send a key of "
                "it as \"Authorization: Bearer KEY\"");
  }
  return 0;
}

wire::HttpLimits HttpSession::http_limits() const {
  // One that can never be read need not come.
  const std::size_t body =
      context_.memory ? std::min(context_.limits.body_bytes, context_.memory->largest_body())
                      : context_.limits.body_bytes;
  return {.header_bytes = context_.limits.header_bytes, .body_bytes = body};
}

milliseconds HttpSession::at_most(milliseconds patience) const {
  return is_hurried() ? std::min(patience, until(last_chance_)) : patience;
}

Error HttpSession::too_late(Limit limit, std::string_view part) const {
  if (is_hurried()) {
    return Error(Errc::ShuttingDown,
                 fmt::format("the router is shutting down, and the request's {} did not arrive in "
                             "time",
                             part))
        .with_retry_after(std::chrono::seconds(1));
  }
  return Error(Errc::RequestTimeout, fmt::format("the request's {} did not arrive in time", part))
      .with_limit(limit);
}

awaitable<HttpSession::Next> HttpSession::tell_options() {
  const std::string allowed = context_.routes.allowed_methods(parser_->head().path());
  wire::Headers headers;
  headers.add("Allow", allowed.empty() ? "GET, HEAD, POST, OPTIONS" : allowed);
  HttpResponse response(connection_, response_options());
  co_await response.respond(204, headers, {});
  parser_.reset();
  co_return Next{nullptr, response.reusable()};
}

awaitable<bool> HttpSession::dispatch(const Route& route) {
  HttpResponse response(connection_, response_options());
  Cancellation cancellation;
  cancellation_ = &cancellation;
  bool peer_left = false;
  connection_.watch_peer([&peer_left, &cancellation] {
    peer_left = true;
    cancellation.request(Error(Errc::ClientGone, "the client closed the connection"));
  });
  co_await start(route, response, cancellation);
  connection_.unwatch_peer();
  cancellation_ = nullptr;
  if (connection_.status() == net::IoStatus::Timeout)
    context_.metrics.limits.count(Limit::ClientWrite);
  co_return response.reusable() && !closing_ && !peer_left;
}

// Not a coroutine, so that nothing of the request stays behind while it is answered.
awaitable<void> HttpSession::start(const Route& route, HttpResponse& response,
                                   Cancellation& cancellation) {
  Call call{std::move(parser_->head()),
            std::move(parser_->body()),
            std::move(request_id_),
            received_,
            peer_.trusted,
            std::move(client_),
            response,
            cancellation,
            std::move(memory_)};
  parser_.reset();
  return route.handler(std::move(call));
}

awaitable<HttpSession::Next> HttpSession::refuse(Error error) {
  context_.metrics.count(error);
  wire::Headers headers = pipeline::error_headers(error);
  if (error.code() == Errc::MethodNotAllowed) {
    headers.add("Allow", context_.routes.allowed_methods(parser_->head().path()));
  }
  if (error.code() == Errc::Unauthorized) headers.add("WWW-Authenticate", "Bearer");

  HttpResponse response(connection_, response_options());
  // A request that came whole, as short ones do, leaves the connection as good as before.
  const auto [consumed, status] = parser_->feed(ahead_);
  ahead_.erase(0, consumed);
  const bool whole = status == wire::ParseStatus::Done;
  if (!whole) response.close_after();
  const auto written =
      co_await response.respond(error.http_status(), headers, pipeline::error_body(error));
  if (whole) {
    parser_.reset();
    co_return Next{nullptr, response.reusable()};
  }
  if (written) co_await drain_body();
  co_return Next{};
}

awaitable<void> HttpSession::drain_body() {
  connection_.end_writing();
  const auto deadline = steady_clock::now() + kSwallowTime;
  std::vector<char> sink(kBodyBuffer);
  std::size_t swallowed = 0;
  while (swallowed < kMostSwallowed && steady_clock::now() < deadline) {
    const net::IoResult read = co_await connection_.read_some(sink, until(deadline));
    if (read.status != net::IoStatus::Ok) co_return;
    swallowed += read.size;
  }
}

awaitable<std::optional<Error>> HttpSession::read_head() {
  std::optional<steady_clock::time_point> deadline;
  std::string buffer;
  while (true) {
    const auto [consumed, status] = parser_->feed(ahead_);
    ahead_.erase(0, consumed);
    if (status == wire::ParseStatus::HeadDone) co_return std::nullopt;
    if (status == wire::ParseStatus::Failed) co_return parser_->error();
    const bool idle = parser_->idle();
    if (!idle && !deadline) deadline = steady_clock::now() + context_.timeouts.client_header;
    const auto patience = at_most(idle ? context_.timeouts.client_idle : until(*deadline));
    net::IoResult read = co_await connection_.wait_readable(patience);
    if (read.status == net::IoStatus::Ok) {
      make_room(buffer, kHeadBuffer);
      read = connection_.try_read(buffer);
    }
    if (read.status == net::IoStatus::Ok && read.size == 0) {
      read = co_await connection_.read_some(buffer, patience);
    }
    if (read.status == net::IoStatus::Timeout && !idle) {
      connection_.recover();
      co_return too_late(Limit::ClientHeader, "head");
    }
    if (read.status != net::IoStatus::Ok) co_return Error(Errc::ClientGone, "");
    ahead_.assign(buffer.data(), read.size);
  }
}

awaitable<std::optional<Error>> HttpSession::read_body() {
  const auto start = steady_clock::now();
  std::size_t received = 0;
  std::string buffer;
  memory_ = MemoryShare(context_.memory);
  while (true) {
    const auto [consumed, status] = parser_->feed(ahead_);
    ahead_.erase(0, consumed);
    if (status == wire::ParseStatus::Done) {
      ahead_.shrink_to_fit();
      co_return std::nullopt;
    }
    if (status == wire::ParseStatus::Failed) co_return parser_->error();
    if (buffer.empty())
      make_room(buffer, std::min<std::size_t>(
                            kBodyBuffer, parser_->head().content_length.value_or(kBodyBuffer)));
    const auto deadline =
        start + context_.timeouts.client_body + std::chrono::seconds(received / kSlowestBodyRate);
    const net::IoResult read = co_await connection_.read_some(buffer, at_most(until(deadline)));
    if (read.status == net::IoStatus::Timeout) {
      connection_.recover();
      co_return too_late(Limit::ClientBody, "body");
    }
    if (read.status != net::IoStatus::Ok) co_return Error(Errc::ClientGone, "");
    received += read.size;
    ahead_.assign(buffer.data(), read.size);
    if (!memory_.cover(received)) {
      give_up_body();
      co_return no_memory_for("the request's body");
    }
  }
}

// The others need not wait for the end of a refusal.
void HttpSession::give_up_body() {
  std::string().swap(parser_->body());
  memory_.shrink(0);
}

HttpResponse::ResponseOptions HttpSession::response_options() const {
  const wire::RequestHead& head = parser_->head();
  return {.http_1_0 = head.minor_version == 0,
          .keep_alive = head.keep_alive,
          .closing = &closing_,
          .head_only = head.method == "HEAD",
          .request_id = request_id_,
          .write_timeout = context_.timeouts.client_write};
}

std::string HttpSession::choose_request_id() const {
  // The second and the third name are those of gateways that choose workers.
  for (const std::string_view name :
       {"x-request-id", "x-baton-request-id", "x-dynamo-request-id"}) {
    const auto given = parser_->head().headers.find(name);
    if (given && is_safe_id(*given)) return std::string(*given);
  }
  const std::uint64_t high = context_.random();
  return hexadecimal(high, context_.random());
}

}  // namespace baton::http
