// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "proxy/traffic.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::bench {

// Role. Compares the body of one answer, as it comes in, byte by byte with what the backend sends
//   for the request: every event, in order, none missing, `[DONE]` last.
class AnswerCheck {
 public:
  explicit AnswerCheck(const Request& request) : request_(request) {}

  // Takes the whole events off the front of `body`, read at `now_ns`; the age of each content event
  // is added to `ages_ns`. Returns what is wrong, nullptr if nothing is.
  const char* take_events(std::string& body, std::uint64_t now_ns,
                          std::vector<std::uint32_t>& ages_ns);

  // To be called once the answer is complete. Returns as above.
  const char* finish(std::string_view body) const;

  bool first_event_seen() const { return role_seen_; }

 private:
  const char* take_event(std::string_view event, std::uint64_t now_ns,
                         std::vector<std::uint32_t>& ages_ns);

  Request request_;
  bool role_seen_ = false;
  bool done_seen_ = false;
  std::uint32_t next_event_ = 0;
};

}  // namespace baton::bench
