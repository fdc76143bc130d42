// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/request_deadline.h"

#include "config/values.h"

#include <fmt/format.h>

#include <cstddef>

namespace baton::pipeline {
namespace {

constexpr std::string_view kKey = "timeouts.request";
constexpr std::size_t kLongest = std::size_t{24} * 60 * 60 * 1000;  // like any duration: a day

std::unexpected<Error> malformed(std::string_view why) {
  return fail(Error(Errc::InvalidRequest,
                    fmt::format("{}: {}; write how many milliseconds the request may take",
                                kRequestTimeoutHeader, why))
                  .with_param(std::string(kRequestTimeoutHeader)));
}

}  // namespace

Result<RequestTimeout> request_timeout(const wire::Headers& headers, scheduling::Trusted trusted,
                                       std::chrono::milliseconds configured) {
  const RequestTimeout usual{configured, kKey};
  std::optional<std::string_view> said;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const auto [name, value] = headers[i];
    if (!wire::equal_ignoring_case(name, kRequestTimeoutHeader)) continue;
    if (said && *said != value) return malformed("it stands twice, with different values");
    said = value;
  }
  if (!said) return usual;
  const auto number = config::parse_number(*said, 1, kLongest);
  if (!number) return malformed(number.error());
  const RequestTimeout own{std::chrono::milliseconds(*number), kRequestTimeoutHeader};
  const bool counts =
      trusted == scheduling::Trusted::Yes || configured.count() == 0 || own.time < configured;
  return counts ? own : usual;
}

void RequestDeadline::begin(RequestTimeout timeout,
                            std::chrono::steady_clock::time_point received) {
  if (timeout.time.count() == 0) return;
  timeout_ = timeout;
  const auto passed = std::chrono::steady_clock::now() - received;
  if (passed >= timeout.time) return over();
  deadline_.emplace(deadlines_, [this] { over(); });
  deadline_->arm(std::chrono::ceil<std::chrono::milliseconds>(timeout.time - passed));
}

void RequestDeadline::over() {
  cancellation_.request(
      Error(Errc::DeadlineExceeded, fmt::format("the request was not answered within {} ms ({})",
                                                timeout_.time.count(), timeout_.said_by))
          .with_limit(Limit::Request));
}

}  // namespace baton::pipeline
