// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace baton::wire {

// Role. Cuts a byte stream into server-sent events. Takes LF, CRLF and CR line ends, comments,
//   several data lines.
// Confinement. One thread.
// Lifetime. Owned by a relay, good for one stream.
// Invariants. The raw ranges of all events, joined, are the bytes fed (without what is still
//   incomplete). An event that arrived whole is not copied; at most `limit` bytes of an unfinished
//   one are held.
class SseReader {
 public:
  explicit SseReader(std::size_t limit = 1024 * 1024) : limit_(limit) {}

  struct Event {
    std::string_view raw;   // all bytes of the event, its closing blank line included
    std::string_view data;  // data lines joined by \n; empty for comments and other fields
  };

  // An event is returned as soon as its blank line is there. Where that line ended in the CR of a
  // CRLF cut in two, the late LF comes as an event of its own, without data.
  // `bytes` must stay valid until next() returned nullopt; both views of an Event are valid until
  // the following call.
  void feed(std::string_view bytes);
  std::optional<Event> next();

  // Bytes of an unfinished event. At the end of a clean stream there are none.
  std::size_t held() const;
  // An event outgrew the limit.
  bool overflowed() const { return overflowed_; }

 private:
  std::optional<Event> take_usual();
  // Past the first event in pending_, npos where it does not end there.
  std::size_t find_event_end();
  Event make_event(std::string_view raw);
  std::string_view collect_data(std::string_view raw);
  void drop_returned();

  std::size_t limit_;
  bool overflowed_ = false;
  bool at_line_start_ = true;    // of the unfinished event's next byte
  bool lf_only_ = true;          // as far as known
  bool after_cr_ = false;        // a CR ended the last line; a LF now would belong to it
  bool after_event_cr_ = false;  // the same, for the blank line of an event already returned
  bool carry_returned_ = false;  // carry_ is the event returned last
  std::string carry_;            // an unfinished event; empty (and without memory) most of the time
  std::string_view pending_;     // what next() looks at
  std::string joined_;           // several data lines
};

}  // namespace baton::wire
