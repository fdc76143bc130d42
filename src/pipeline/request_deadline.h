// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "net/deadlines.h"
#include "scheduling/policy/trust.h"
#include "wire/http_message.h"

#include <chrono>
#include <optional>
#include <string_view>

namespace baton::pipeline {

inline constexpr std::string_view kRequestTimeoutHeader = "X-Request-Timeout-Ms";

// How long a request may take.
struct RequestTimeout {
  std::chrono::milliseconds time;  // 0: as long as it takes
  std::string_view said_by;        // the key or the header

  bool operator==(const RequestTimeout&) const = default;
};

// The configured time, unless the request's header says less, or its source is trusted to say more.
// InvalidRequest if the header makes no sense.
Result<RequestTimeout> request_timeout(const wire::Headers& headers, scheduling::Trusted trusted,
                                       std::chrono::milliseconds configured);

// Role. Gives a request up when its time is over, whatever is being done for it then.
// Confinement. One I/O thread.
// Lifetime. The request's; ends before its Cancellation.
class RequestDeadline {
 public:
  RequestDeadline(net::Deadlines& deadlines, Cancellation& cancellation)
      : deadlines_(deadlines), cancellation_(cancellation) {}

  // Ends at once if the time is over already.
  void begin(RequestTimeout timeout, std::chrono::steady_clock::time_point received);

 private:
  void over();

  net::Deadlines& deadlines_;
  Cancellation& cancellation_;
  RequestTimeout timeout_{};
  std::optional<net::Deadline> deadline_;  // where there is one
};

}  // namespace baton::pipeline
