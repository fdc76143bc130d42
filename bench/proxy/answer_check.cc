// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "proxy/answer_check.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace baton::bench {

const char* AnswerCheck::take_events(std::string& body, std::uint64_t now_ns,
                                     std::vector<std::uint32_t>& ages_ns) {
  const std::string_view all = body;
  std::size_t taken = 0;
  for (std::size_t end; (end = all.find("\n\n", taken)) != std::string_view::npos;) {
    end += 2;
    if (const char* wrong = take_event(all.substr(taken, end - taken), now_ns, ages_ns))
      return wrong;
    taken = end;
  }
  body.erase(0, taken);
  return nullptr;
}

const char* AnswerCheck::take_event(std::string_view event, std::uint64_t now_ns,
                                    std::vector<std::uint32_t>& ages_ns) {
  thread_local std::string expected;
  expected.clear();
  if (done_seen_) return "an event after [DONE]";
  if (!role_seen_) {
    role_seen_ = true;
    append_role_event(expected, request_.id);
    return event == expected ? nullptr : "the first event is not the role event of this request";
  }
  if (next_event_ == request_.events) {
    done_seen_ = true;
    return event == kDoneEvent ? nullptr : "not [DONE] after the last event";
  }
  const std::optional<std::uint64_t> stamp_ns = find_stamp(event);
  if (!stamp_ns || *stamp_ns > now_ns) return "an event without a sensible stamp";
  const bool last = next_event_ + 1 == request_.events;
  append_content_event(expected, request_.id, next_event_, *stamp_ns, last ? Last::Yes : Last::No);
  if (event != expected) return "an event is not the next one of this request";
  ++next_event_;
  ages_ns.push_back(static_cast<std::uint32_t>(
      std::min<std::uint64_t>(now_ns - *stamp_ns, std::numeric_limits<std::uint32_t>::max())));
  return nullptr;
}

const char* AnswerCheck::finish(std::string_view body) const {
  if (request_.stream) {
    if (!done_seen_) return "the stream ended before [DONE]";
    return body.empty() ? nullptr : "bytes after the last event";
  }
  std::string expected;
  append_answer(expected, request_.id);
  return body == expected ? nullptr : "the answer is not the one to this request";
}

}  // namespace baton::bench
