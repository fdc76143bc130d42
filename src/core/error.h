// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace baton {

// Every way a request can fail. What each one means to the outside is one row of the table in
// error.cc.
enum class Errc {
  InvalidRequest,
  InvalidJson,
  Unauthorized,
  ModelNotFound,
  NotFound,
  MethodNotAllowed,
  RequestTimeout,
  PayloadTooLarge,
  HeadersTooLarge,
  ExpectationFailed,
  EngineRejected,
  EngineOverloaded,
  EngineFailed,
  EngineUnreachable,
  EngineTimeout,
  EngineProtocol,
  StreamBroken,
  NoWorkers,
  TooManyConnections,
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
  bool retryable;  // another worker may succeed, as long as no byte went to the client
};

std::span<const ErrorInfo> error_table();
const ErrorInfo& describe(Errc code);

// A failure: what kind, and a sentence for the person who meets it.
class Error {
 public:
  Error(Errc code, std::string message) : code_(code), message_(std::move(message)) {}

  Errc code() const { return code_; }
  const std::string& message() const { return message_; }
  const ErrorInfo& info() const { return describe(code_); }

  // The engine's own 4xx status and `param` are passed on where it gave them.
  int http_status() const { return http_status_.value_or(info().http_status); }
  const std::optional<std::string>& param() const { return param_; }
  // Set where waiting helps; the client gets it as Retry-After.
  std::optional<std::chrono::seconds> retry_after() const { return retry_after_; }

  Error& with_status(int status) {
    http_status_ = status;
    return *this;
  }
  Error& with_param(std::string param) {
    param_ = std::move(param);
    return *this;
  }
  Error& with_retry_after(std::chrono::seconds delay) {
    retry_after_ = delay;
    return *this;
  }

 private:
  Errc code_;
  std::string message_;
  std::optional<int> http_status_;
  std::optional<std::string> param_;
  std::optional<std::chrono::seconds> retry_after_;
};

}  // namespace baton
