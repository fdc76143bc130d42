// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/limit.h"

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace baton {

// Every way a request can fail. A table in error.cc maps each to its status and texts.
enum class Errc {
  InvalidRequest,
  InvalidJson,
  Unauthorized,
  Forbidden,
  ModelNotFound,
  NotFound,
  MethodNotAllowed,
  RequestTimeout,
  Conflict,
  PayloadTooLarge,
  HeadersTooLarge,
  ExpectationFailed,
  InvalidRouting,
  EngineRejected,
  EngineUnauthorized,
  EngineOverloaded,
  EngineFailed,
  EngineUnreachable,
  EngineTimeout,
  EngineProtocol,
  StreamBroken,
  PoisonRequest,
  NoHandoff,
  NoWorkers,
  PrefillUnavailable,
  NoEligibleWorker,
  QueueFull,
  QueueTimeout,
  SloUnattainable,
  DeadlineExceeded,
  WorkersBusy,
  TooManyConnections,
  OutOfResources,
  MemoryExhausted,
  RateLimited,
  ShuttingDown,
  ClientGone,
  Internal,
};

enum class Fault { Client, Engine, Us };

// One row of the error table.
struct ErrorInfo {
  Errc code;
  int http_status;
  std::string_view type;   // OpenAI's `error.type`
  std::string_view label;  // metric label, log field and OpenAI's `error.code`
  Fault fault;
  bool retryable;            // another worker may succeed, as long as no byte went to the client
  std::string_view meaning;  // for operators, as Markdown; the page on errors is made of it
};

std::span<const ErrorInfo> error_table();
const ErrorInfo& describe(Errc code);

// An answer of an engine that the client gets as it is, in place of an error of Baton's own shape.
struct Reply {
  std::string content_type;  // empty: it named none
  std::string body;
};

// A failure: its kind, and a sentence for the user. Two words wide, because every result of every
// coroutine has room for one.
class Error {
 public:
  Error(Errc code, std::string message)
      : code_(code),
        details_(new Details{.message = std::move(message),
                             .http_status = {},
                             .param = {},
                             .retry_after = {},
                             .figures = {},
                             .reply = {},
                             .cause = {},
                             .limit = {}}) {}
  Error(const Error& other) : code_(other.code_), details_(new Details(*other.details_)) {}
  Error(Error&& other) noexcept = default;
  Error& operator=(Error other) noexcept {
    code_ = other.code_;
    details_ = std::move(other.details_);
    return *this;
  }

  Errc code() const { return code_; }
  const std::string& message() const { return details_->message; }
  const ErrorInfo& info() const { return describe(code_); }

  // The engine's own 4xx status and `param` are passed on where it gave them.
  int http_status() const { return details_->http_status.value_or(info().http_status); }
  const std::optional<std::string>& param() const { return details_->param; }
  // Set where waiting helps; the client gets it as Retry-After.
  std::optional<std::chrono::seconds> retry_after() const { return details_->retry_after; }

  // A JSON object for programs; the client gets it as `error.details`.
  const std::optional<std::string>& figures() const { return details_->figures; }

  // Set where the engine refused the request in its own words; the client gets these.
  const std::optional<Reply>& reply() const { return details_->reply; }

  // The operating system's error, if it tells more than the code does. For Baton's own decisions:
  // clients never see it.
  std::optional<std::errc> cause() const { return details_->cause; }

  // Set where a limit was met; metrics count it, clients never see it.
  std::optional<Limit> limit() const { return details_->limit; }

  Error& with_status(int status) {
    details_->http_status = status;
    return *this;
  }
  Error& with_param(std::string param) {
    details_->param = std::move(param);
    return *this;
  }
  Error& with_retry_after(std::chrono::seconds delay) {
    details_->retry_after = delay;
    return *this;
  }
  Error& with_figures(std::string json) {
    details_->figures = std::move(json);
    return *this;
  }
  Error& with_reply(Reply reply) {
    details_->reply = std::move(reply);
    return *this;
  }
  Error& with_cause(std::errc cause) {
    details_->cause = cause;
    return *this;
  }
  Error& with_limit(Limit limit) {
    details_->limit = limit;
    return *this;
  }

 private:
  struct Details {
    std::string message;
    std::optional<int> http_status;
    std::optional<std::string> param;
    std::optional<std::chrono::seconds> retry_after;
    std::optional<std::string> figures;
    std::optional<Reply> reply;
    std::optional<std::errc> cause;
    std::optional<Limit> limit;
  };

  Errc code_;
  std::unique_ptr<Details> details_;  // null only after a move
};

}  // namespace baton
